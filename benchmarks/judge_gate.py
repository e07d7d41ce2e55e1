"""The gate against judges who know nothing, and against one who knows a little, over many simulated audits.

Each audit asks about images of three modalities: one clean edit a image, twice; its wrong labels, naive editors, an
unedited copy and planted defects, as `judge audit` does, and no more of any than an edit has at the least. Judges:
at random; always yes; always no; by a hash of the image and the criterion (so that it repeats itself exactly,
whatever the edit); by a hash of the edit; one that passes a right edit 20 points more often than a wrong one.

    python benchmarks/judge_gate.py --seeds 1000
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from plantain.audit.gate import AGAIN, CLEAN, NAIVE, TrialAnswer, gaps_of, gate_of
from plantain.records import Criterion

CRITERIA = tuple(criterion.value for criterion in Criterion)
MODALITIES = ("brain_mri", "chest_xray", "fundus")
DEFECTS = tuple(
    (f"defect of {name}", (name,)) for name, n in zip(CRITERIA, (2, 1, 2, 4), strict=True) for _ in range(n)
)
WRONG = (*(("swapped label", ()),) * 2, *((name, ()) for name in NAIVE), ("identical", ()), *DEFECTS)
"""Edits of each image in addition to its clean one: as many wrong labels as a brain slice has, the fewest."""

Rule = Callable[[np.random.Generator, str, str, bool], float]


def asked(images: int) -> Iterator[TrialAnswer]:
    """Every edit of an audit, unanswered."""
    for number in range(images):
        modality = MODALITIES[number % len(MODALITIES)]
        for kind, violates in ((CLEAN, ()), (AGAIN, ()), *WRONG):
            yield TrialAnswer(kind, modality, "add", f"p{number}", violates, {}, None)


def random_half(rng: np.random.Generator, image: str, criterion: str, right: bool) -> float:
    return float(rng.random() < 0.5)


def always(answer: bool) -> Rule:
    return lambda rng, image, criterion, right: float(answer)


def by_hash(rng: np.random.Generator, image: str, criterion: str, right: bool) -> float:
    return float(hashlib.sha256(f"{image} {criterion}".encode()).digest()[0] < 128)


def knows(points: float) -> Rule:
    return lambda rng, image, criterion, right: float(
        rng.random() < 0.5 + (points / 200) * (1 if right else -1)
    )


def judged(rule: Rule, images: int, seed: int, by_edit: bool = False) -> list[TrialAnswer]:
    """An audit's answers. `by_edit`: the rule sees the edit's own name, so that its hash differs from edit to edit."""
    rng = np.random.default_rng(seed)
    answers = []
    for number, answer in enumerate(asked(images)):
        about = f"{seed} {answer.cluster} {number if by_edit else ''}"
        shares = {c: rule(rng, about, c, answer.kind in (CLEAN, AGAIN)) for c in CRITERIA}
        answers.append(replace(answer, shares=shares, qualified=all(shares.values())))
    return answers


JUDGES: dict[str, tuple[Rule, bool]] = {
    "at random": (random_half, False),
    "always yes": (always(True), False),
    "always no": (always(False), False),
    "hash of the image": (by_hash, False),
    "hash of the edit": (by_hash, True),
    "gap of 20 points": (knows(20.0), False),
}


def passing(name: str, images: int, seeds: int) -> dict[str, float]:
    """Share of audits after which the judge may rank."""
    rule, by_edit = JUDGES[name]
    ranked = 0
    for seed in range(seeds):
        gate = gate_of(gaps_of(judged(rule, images, seed, by_edit), CRITERIA), {}, None, 1.0)
        ranked += gate.rank
    return {"may rank": ranked / seeds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--images", type=int, nargs="+", default=[30, 100])
    options = parser.parse_args()
    for images in options.images:
        for name in JUDGES:
            found = passing(name, images, options.seeds)
            print(json.dumps({"judge": name, "images": images, "seeds": options.seeds, **found}), flush=True)


if __name__ == "__main__":
    main()
