"""Procedures by organ, as search terms for collectors of pairs: two lists, and a model's additions."""

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
from plantain.records.suggestions import suggest
from plantain.roles import Reply
from plantain.runs.door import Beginning, Door
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary

MOST = 10
"""Procedures requested in one call."""

PUBLISHED = "published"
PUBLISHED_TASKS = 70
"""Tasks of MedEBench; its Table 5 names those with more than five samples."""


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
def _lists() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def listed_procedures(organ: str) -> dict[str, tuple[str, ...]]:
    """Return procedures by organ, in the order of MedEBench's tables.

    Args:
        organ: an organ, "all", or "published" for the tasks of MedEBench's Table 5.

    Raises:
        InputError: the organ has no list.
    """
    if organ == PUBLISHED:
        return {name: tuple(found) for name, found in _lists()[PUBLISHED].items()}
    ours = _lists()["plantain"]
    name, _ = canonical_organ(organ)
    if organ != "all" and name not in ours:
        raise InputError(f"--procedures: no list of {organ!r}; {suggest(organ, ('all', PUBLISHED, *ours))}")
    return {key: tuple(found) for key, found in ours.items() if organ == "all" or key == name}


async def propose_procedures(
    listed: Mapping[str, Sequence[str]], terms: Terms, run: Path, seed: int
) -> tuple[dict[str, tuple[str, ...]], RunSummary]:
    """Return a model's additions to a list, by organ.

    Args:
        listed: procedures by organ.
        terms: name the one model.
        run: folder of the journal of its answers, which are reused.
        seed: of its draws.

    Raises:
        InputError: the model is unknown or cannot name procedures.
    """
    door = Door(terms)
    door.check()
    found = door.describer(terms.models[0])
    if not isinstance(found, NamesProcedures):
        raise InputError(f"--describer: {terms.models[0]!r} cannot propose procedures")
    model = cast(NamesProcedures, found)
    proposed: dict[str, tuple[str, ...]] = {}
    async with door.open(run, Beginning("procedures", seed, {"kind": "procedures", "seed": seed})) as opened:

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
