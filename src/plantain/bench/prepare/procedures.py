"""Procedures by organ that a collector of real pairs can look for: our list, longer where a model is asked."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import orjson

from plantain.bench.benchmark.organs import canonical_organ
from plantain.calls import CallSpec
from plantain.journal import CallResult
from plantain.records import Direction, EditTask, InputError, Step, TaskKind, TaskState
from plantain.roles import Reply
from plantain.runs.door import Beginning, Door
from plantain.runs.open_run import OpenRun
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary

MOST = 10
"""Procedures that are asked for at once."""


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
    """Our own list, by organ in the order of MedEBench's tables."""
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {organ: tuple(procedures) for organ, procedures in data.items()}


def procedures_of(organ: str) -> tuple[str, tuple[str, ...]]:
    """An organ's canonical name and its procedures.

    Raises:
        InputError: none of our organs.
    """
    name, remark = canonical_organ(organ)
    if name not in listed_procedures():
        raise InputError(f"organ {organ!r}: {remark}; there are {', '.join(listed_procedures())}")
    return name, listed_procedures()[name]


async def propose_procedures(
    listed: Mapping[str, Sequence[str]], terms: Terms, run: Path, seed: int
) -> tuple[dict[str, tuple[str, ...]], RunSummary]:
    """What a model adds to our list, organ by organ; an answer that the run has is never asked for again.

    Args:
        listed: our own, by organ.
        terms: whose one model is asked.
        run: folder of the journal of its answers.
        seed: of its draws.

    Raises:
        InputError: the model cannot be had, or names no procedures.
    """
    door = Door(terms)
    door.check()
    model = door.describer(terms.models[0])
    if not isinstance(model, NamesProcedures):
        raise InputError(f"--describer: {terms.models[0]!r} cannot propose procedures")
    asked = cast(NamesProcedures, model)
    proposed: dict[str, tuple[str, ...]] = {}
    async with door.open(run, Beginning("procedures", seed, {"kind": "procedures", "seed": seed})) as opened:

        async def carry(organ: str) -> None:
            proposed[organ] = await _proposed(opened, asked, organ, listed[organ], seed)

        await opened.walk(listed, carry)
    return proposed, opened.summary


async def _proposed(
    opened: OpenRun, model: NamesProcedures, organ: str, known: Sequence[str], seed: int
) -> tuple[str, ...]:
    name = hashlib.sha256(f"procedures\x1f{organ}".encode()).hexdigest()[:20]
    task = EditTask(name, "none", organ, "procedures", Direction.CHANGE, TaskKind.BENCH)
    await opened.journal.add_tasks([task])
    identity: dict[str, object] = {
        "fingerprint": model.fingerprint,
        "organ": organ,
        "known": list(known),
        "seed": seed,
    }

    async def send() -> Reply[tuple[str, ...]]:
        return await model.procedures(organ, known, MOST, seed)

    async def settle(reply: Reply[tuple[str, ...]], draft: CallResult) -> CallResult:
        return draft if reply.value is None else replace(draft, answer=orjson.dumps(reply.value).decode())

    spec = CallSpec(Step.WRITE, 1, 0, model.name, identity, send, settle)
    answer = await opened.calls(task.id, 1).answer(spec)
    state = TaskState.SUCCESS if answer.outcome.ok else TaskState.STOPPED
    await opened.close_task(task.id, state, 1, answer.outcome.reason)
    return tuple(orjson.loads(answer.text)) if answer.outcome.ok else ()
