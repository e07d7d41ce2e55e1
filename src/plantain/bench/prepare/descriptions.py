"""Describing pairs under a run's terms: every answer of a hosted model is journalled, so that none is paid twice."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.bench.prepare.describers import TOLD, described, describing_task, resolve_describer
from plantain.calls import ModelClient, TaskCalls
from plantain.journal import DiskFull, Journal
from plantain.models.registry import close_models
from plantain.records import InputError, SourceImage, TaskState
from plantain.roles import ChangeDescription, Describer, DescribeRequest
from plantain.runs.consent import check_consent, is_hosted
from plantain.runs.door import Door
from plantain.runs.opening import changed_since, open_client, open_run
from plantain.runs.pricing import check_prices
from plantain.runs.terms import Terms
from plantain.runs.transport import check_transports, tasks_under_way
from plantain.runs.worker_pool import WorkerPool, interruptible, time_cap

Describe = Callable[[DescribeRequest], Awaitable[ChangeDescription | str]]
Carry = Callable[[int, Describe], Awaitable[None]]
"""Carries the pair of that number through, with what describes it."""


@dataclass(frozen=True, slots=True)
class Walked:
    """How the walk over all pairs ended: what describes, calls, money, and why it stopped before its end, if it did."""

    describer: str
    made: int = 0
    replayed: int = 0
    spent_usd: float = 0.0
    stopped: str | None = None
    failed: bool = False


async def walk_pairs(
    pairs: int, images: Iterable[SourceImage], carry: Carry, terms: Terms, run: Path, seed: int
) -> Walked:
    """Carries every pair through, several at once.

    Args:
        pairs: how many there are.
        images: what is known of each image before, for the consent gate.
        carry: called once for each pair.
        terms: whose one model is the describer.
        run: folder of the journal of a hosted describer's calls; not made for one that runs here.
        seed: of the describer's draws.

    Raises:
        InputError: the describer cannot be had, or an image may not be sent to it.
    """
    name = terms.models[0]
    if name.startswith("offline/"):
        describer = resolve_describer(name)
        await _offline(pairs, carry, describer)
        return Walked(describer.fingerprint)
    check_prices(terms)
    check_transports(terms)
    check_consent(terms, images)
    return await _hosted(pairs, carry, terms, run, seed)


async def _offline(pairs: int, carry: Carry, describer: Describer) -> None:
    async def describe(request: DescribeRequest) -> ChangeDescription | str:
        reply = await describer.describe(request)
        return reply.value if reply.value is not None else reply.outcome.reason

    for number in range(pairs):
        await carry(number, describe)


async def _hosted(pairs: int, carry: Carry, terms: Terms, run: Path, seed: int) -> Walked:
    door = Door(terms)
    jobs = door.jobs
    describer = resolve_describer(terms.models[0], door.options(terms.models[0]))
    journal = await open_run(run, "descriptions", seed, {"kind": "describe", "seed": seed})
    door.gate.journal = journal
    try:
        changed = await changed_since(journal, "describe.models", {"describer": describer.fingerprint})
        if changed:
            raise InputError(f"{run}: {changed}")
        client, _ = await open_client(terms, journal, jobs)
        pool = WorkerPool(client)
        journalled = _Journalled(journal, client, describer)

        async def one(number: int) -> None:
            await carry(number, journalled.describe)

        async with interruptible(client, lambda: None), time_cap(terms.limits, journal.reader, pool):
            await pool.all(range(pairs), one, tasks_under_way(terms), None)
        stopped = pool.halted or ("interrupted" if client.stop_requested else None)
        with contextlib.suppress(DiskFull):  # telemetry is not worth a fault where there is no room for it
            await journal.end_session(client.replayed, {"made": client.made})
        return Walked(
            describer.fingerprint,
            client.made,
            client.replayed,
            journal.reader.spent_usd(),
            stopped,
            pool.faulty,
        )
    finally:
        await jobs.close()
        await journal.close()
        await close_models(describer)


@dataclass(frozen=True, slots=True)
class _Journalled:
    """Describes a pair through the run's journal."""

    journal: Journal
    client: ModelClient
    describer: Describer

    async def describe(self, request: DescribeRequest) -> ChangeDescription | str:
        """The description, recorded now or before; or why there is none."""
        task = describing_task(request)
        blob = await asyncio.to_thread(self.journal.put_blob, request.pair.data, request.pair.media_type)
        image = replace(request.image, id=task.id, prepared_sha256=blob.sha256)
        await self.journal.add_images([(image, blob)])
        await self.journal.add_tasks([replace(task, image_id=task.id)])
        calls = TaskCalls(self.client, task.id, 1, self.journal.reader.calls(task.id, 1))
        said = await described(calls, self.describer, request)
        failed = isinstance(said, str)
        await self.journal.close_task(
            task.id, TaskState.STOPPED if failed else TaskState.SUCCESS, 1, str(said) if failed else ""
        )
        return said


def hosted_describer(terms: Terms) -> bool:
    """Whether the pairs leave this machine."""
    return is_hosted(terms, terms.models[0])


def told_of(values: dict[str, str], names: Sequence[str] = TOLD) -> dict[str, str]:
    """What the owner said, in its fixed order, without what was left empty."""
    return {name: values[name] for name in names if values.get(name)}
