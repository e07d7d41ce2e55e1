"""Procedures by organ that a collector of real pairs can look for: our list, and what a model adds to it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import orjson

from plantain.bench.benchmark.medebench import canonical_organ
from plantain.bench.prepare.describers import asked_once
from plantain.records import Direction, EditTask, InputError, TaskKind
from plantain.roles import Reply
from plantain.runs.progress import RunSummary
from plantain.runs.settings.terms import Terms
from plantain.runs.setup import NewRun, RunSetup

MOST = 10
"""Procedures to ask for at once."""


@runtime_checkable
class NamesProcedures(Protocol):
    """A describer that can name procedures."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def procedures(
        self, organ: str, known: Sequence[str], most: int, seed: int
    ) -> Reply[tuple[str, ...]]: ...


@cache
def listed_procedures() -> dict[str, tuple[str, ...]]:
    """Return our own list, by organ in the order of MedEBench's tables."""
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {organ: tuple(procedures) for organ, procedures in data.items()}


def procedures_of(organ: str) -> tuple[str, tuple[str, ...]]:
    """Return an organ's canonical name and its procedures. Raises InputError if it is not in our list."""
    name, remark = canonical_organ(organ)
    if name not in listed_procedures():
        raise InputError(f"organ {organ!r}: {remark}; there are {', '.join(listed_procedures())}")
    return name, listed_procedures()[name]


async def propose_procedures(
    listed: Mapping[str, Sequence[str]], terms: Terms, run: Path, seed: int
) -> tuple[dict[str, tuple[str, ...]], RunSummary]:
    """Return what a model adds to our list, by organ.

    Args:
        listed: our own, by organ.
        terms: whose one model is asked.
        run: folder of the journal of its answers; none is asked for twice.
        seed: of its draws.

    Raises:
        InputError: there is no such model, or it names no procedures.
    """
    setup = RunSetup(terms)
    setup.check()
    found = setup.describer(terms.models[0])
    if not isinstance(found, NamesProcedures):
        raise InputError(f"--describer: {terms.models[0]!r} cannot propose procedures")
    model = cast(NamesProcedures, found)
    proposed: dict[str, tuple[str, ...]] = {}
    async with setup.open(run, NewRun("procedures", seed, {"kind": "procedures", "seed": seed})) as opened:

        async def carry(organ: str) -> None:
            known = list(listed[organ])
            name = hashlib.sha256(f"procedures\x1f{organ}".encode()).hexdigest()[:20]
            task = EditTask(name, "none", organ, "procedures", Direction.CHANGE, TaskKind.BENCH)
            await opened.journal.add_tasks([task])
            identity: dict[str, object] = {
                "fingerprint": model.fingerprint,
                "organ": organ,
                "known": known,
                "seed": seed,
            }
            answer = await asked_once(
                opened, task, model.name, identity, lambda: model.procedures(organ, known, MOST, seed)
            )
            proposed[organ] = tuple(orjson.loads(answer.text)) if answer.outcome.ok else ()

        await opened.walk(listed, carry)
    return proposed, opened.summary
