"""Results of a proof in the form that tests compare."""

from __future__ import annotations

import os

from plantain.release.proof.verify import Proof

SEED = int(os.environ.get("PLANTAIN_TAMPER_SEED", "20261121"))


def named(proof: Proof) -> set[str]:
    return {problem.path for problem in proof.problems}


def kinds(proof: Proof) -> set[tuple[str, str]]:
    return {(problem.path, problem.kind) for problem in proof.problems}
