"""Describing pairs under a run's terms: every answer of a hosted model is journalled, so that none is paid twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.bench.prepare.describers import (
    AS_TOLD,
    GIVEN,
    GivenDescription,
    described,
    describer_of,
    describing_task,
)
from plantain.records import InputError, SourceImage, TaskState
from plantain.roles import ChangeDescription, Describer, DescribeRequest
from plantain.runs.consent import is_hosted
from plantain.runs.door import Beginning, Door, changed_since
from plantain.runs.engine import engine_alone
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.open_run import OpenRun, together
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary

Describe = Callable[[DescribeRequest], Awaitable[ChangeDescription | str]]
Carry = Callable[[int, Describe], Awaitable[None]]
"""Carries the pair of that number through, with what describes it."""


async def walk_pairs(
    pairs: int,
    images: Iterable[SourceImage],
    carry: Carry,
    terms: Terms,
    run: Path,
    seed: int,
    observer: ProgressObserver = SILENT,
) -> RunSummary:
    """Carries every pair through, several at once.

    Args:
        pairs: how many there are.
        images: what is known of each image before, for the consent gate.
        carry: called once for each pair.
        terms: whose one model is the describer.
        run: folder of the journal of a describer's calls; not made where no model is asked.
        seed: of the describer's draws.
        observer: told how it goes on.

    Raises:
        InputError: the describer cannot be had, or an image may not be sent to it.
    """
    name = terms.models[0]
    if name == AS_TOLD:
        async with engine_alone(terms.engine) as room:
            await _as_given(pairs, carry, max(1, 2 * room))
        return RunSummary()
    door = Door(terms)
    door.check(images=images)
    describer = describer_of(door, name)
    beginning = Beginning("descriptions", seed, {"kind": "describe", "seed": seed})
    async with door.open(run, beginning, observer=observer) as opened:
        changed = await changed_since(opened.journal, "describe.models", {"describer": describer.fingerprint})
        if changed:
            raise InputError(f"{run}: {changed}")
        journalled = _Journalled(opened, describer)

        async def one(number: int) -> None:
            await carry(number, journalled.describe)

        await opened.walk(range(pairs), one)
    return opened.summary


async def _as_given(pairs: int, carry: Carry, at_once: int) -> None:
    """The owner's own words: no model is asked."""

    async def describe(request: DescribeRequest) -> ChangeDescription | str:
        reply = await GivenDescription().describe(request)
        return reply.value if reply.value is not None else reply.outcome.reason

    numbers = iter(range(pairs))

    async def some() -> None:
        for number in numbers:
            await carry(number, describe)

    await together(some() for _ in range(at_once))


@dataclass(frozen=True, slots=True)
class _Journalled:
    """Describes a pair through the run's journal."""

    opened: OpenRun
    describer: Describer

    async def describe(self, request: DescribeRequest) -> ChangeDescription | str:
        """The description, recorded now or before; or why there is none."""
        task = describing_task(request)
        journal = self.opened.journal
        blob = await asyncio.to_thread(journal.put_blob, request.pair.data, request.pair.media_type)
        image = replace(request.image, id=task.id, prepared_sha256=blob.sha256)
        await journal.add_images([(image, blob)])
        await journal.add_tasks([replace(task, image_id=task.id)])
        description = await described(self.opened.calls(task.id, 1), self.describer, request)
        failed = isinstance(description, str)
        state = TaskState.STOPPED if failed else TaskState.SUCCESS
        await self.opened.close_task(task.id, state, 1, str(description) if failed else "")
        return description


def hosted_describer(terms: Terms) -> bool:
    """Whether the pairs leave this machine."""
    return is_hosted(terms, terms.models[0])


def given_of(values: dict[str, str], names: Sequence[str] = GIVEN) -> dict[str, str]:
    """What the owner said, in its fixed order, without what was left empty."""
    return {name: values[name] for name in names if values.get(name)}
