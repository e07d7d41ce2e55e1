"""The walk of one task of a bench run: every output of its arm's grid, each a memoised call, then the task's end."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arm_requests import PlannedArm
from plantain.bench.generate.arms import ArmKind, output_seed
from plantain.bench.generate.outputs import keep_output
from plantain.bench.generate.taken_in import PNG, changed_of, previous_of
from plantain.calls import CallSpec, Interrupted, TaskCalls
from plantain.journal import CallResult, Journal, TaskRow
from plantain.pixels.encode import encode_mask
from plantain.privacy.lineage import made_from
from plantain.records import Attempt, Direction, Outcome, OutcomeKind, Step, TaskState
from plantain.roles import Demonstration, EditedImage, EditRequest, EncodedImage, Reply
from plantain.runs.open_run import OpenRun

GAVE_UP = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.TRANSPORT})
"""The model never answered, in spite of all tries."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task ended: its state, how many outputs it has had, and why not all of them are images."""

    state: TaskState
    outputs: int
    reason: str = ""


@dataclass(slots=True)
class GenerateWalk:
    """Everything that the tasks of a bench run need on their way.

    `retry` names outcomes: an output that ended so is asked for once more, as another draw of the same call.
    """

    benchmark: Benchmark
    opened: OpenRun
    seed: int
    arms: Mapping[str, PlannedArm]
    retry: frozenset[OutcomeKind] = frozenset()
    shown: dict[str, tuple[EncodedImage, EncodedImage]] = field(default_factory=dict)

    @property
    def journal(self) -> Journal:
        return self.opened.journal

    async def carry(self, row: TaskRow) -> None:
        """Makes the outputs that the task lacks and closes it."""
        planned = self.arms[row.task.finding]
        sample = self.benchmark.sample(row.task.image_id)
        obstacle = planned.obstacle(sample)
        if obstacle:
            await self.opened.close_task(row.id, TaskState.NOT_APPLICABLE, 0, obstacle)
            return
        recorded = self.journal.reader.attempts(row.id, row.generation)
        made = {one.round: one for one in recorded if not wants_retry(one, self.retry)}
        if len(made) < len(planned.arm.grid):
            original, sha256 = await previous_of(self.benchmark, self.journal, sample)
            calls = self.journal.reader.calls(row.id, row.generation)
            draws = Counter(call.key.round for call in calls if call.final)
            task_calls = self.opened.calls(row.id, row.generation)
            maker = _Maker(self, row, planned, sample, original, sha256, task_calls)
            self.opened.client.replayed += len(made)
            lacking = [k for k in range(len(planned.arm.grid)) if k + 1 not in made]
            for attempt in await _all(maker.make(k, draws[k + 1]) for k in lacking):
                made[attempt.round] = attempt
        ending = ending_of([made[number] for number in sorted(made)])
        await self.opened.close_task(row.id, ending.state, ending.outputs, ending.reason)

    async def demonstration(self, sample_id: str) -> tuple[EncodedImage, EncodedImage]:
        """A worked example's image before and after; kept, since a whole task's samples are shown the same few."""
        if sample_id not in self.shown:
            sample = self.benchmark.sample(sample_id)
            before, _ = await previous_of(self.benchmark, self.journal, sample)
            self.shown[sample_id] = (before, await changed_of(self.benchmark, sample, before))
        return self.shown[sample_id]


@dataclass(slots=True)
class _Maker:
    """One task's outputs, for `GenerateWalk` to ask for in turn."""

    walk: GenerateWalk
    row: TaskRow
    planned: PlannedArm
    sample: Sample
    original: EncodedImage
    sha256: str
    calls: TaskCalls

    async def make(self, k: int, draw: int) -> Attempt:
        """Output k: with its image, or with the outcome that left it without one. `draw` counts earlier answers."""
        request, identity = await self._request(k)
        attempt = Attempt(self.row.id, self.row.generation, k + 1, request.instruction)

        async def send() -> Reply[EditedImage]:
            return await self.planned.source.output(request, k)

        async def settle(reply: Reply[EditedImage], draft: CallResult) -> CallResult:
            if reply.value is None:
                return replace(draft, attempt=replace(attempt, edit_outcome=reply.outcome))
            return await asyncio.to_thread(
                keep_output, self.walk.journal, attempt, reply.value, draft, self.sample.size
            )

        arm = self.planned.arm
        alone = arm.kind is not ArmKind.EDITOR
        spec = CallSpec(Step.EDIT, k + 1, draw, arm.model, identity, send, settle, alone)
        answer = await self.calls.answer(spec)
        if not answer.outcome.ok:
            return replace(attempt, edit_outcome=answer.outcome)
        fields = orjson.loads(answer.text)
        return replace(attempt, edit_outcome=answer.outcome, edited=fields["edited"])

    async def _request(self, k: int) -> tuple[EditRequest, dict[str, object]]:
        """What the source is handed, and all that identifies it."""
        arm, point = self.planned.arm, self.planned.arm.grid[k]
        sample = self.sample
        concept = sample.finding or sample.key_concept
        direction = None if sample.direction is Direction.CHANGE else sample.direction
        seed = output_seed(self.walk.seed, self.sample.id, point.seed)
        shown, shown_identity = await self._demonstrations()
        region = await asyncio.to_thread(self._region) if arm.region else None
        request = EditRequest(
            replace(self.sample.image, id=self.sample.id, prepared_sha256=self.sha256),
            self.original,
            arm.instruction(self.sample),
            seed,
            demonstrations=shown,
            region=region,
            parameters=point.parameters,
            concept=concept,
            direction=direction,
        )
        identity: dict[str, object] = {
            "fingerprint": arm.fingerprint,
            "seed": seed,
            "image": self.sha256,
            "instruction": request.instruction,
            "parameters": dict(point.parameters),
            "about": [concept, direction],
        }
        if shown:
            identity["demonstrations"] = [self.planned.by_example, *shown_identity]
        if region is not None:
            identity["region"] = hashlib.sha256(region.data).hexdigest()
        return request, identity

    async def _demonstrations(self) -> tuple[tuple[Demonstration, ...], list[object]]:
        """The first of the study's demonstrations for this task, as many as the arm shows."""
        arm, benchmark = self.planned.arm, self.walk.benchmark
        if not arm.shots:
            return (), []
        shown: list[Demonstration] = []
        identity: list[object] = []
        for sample_id in arm.demonstrations[self.sample.task][: arm.shots]:
            sample = benchmark.sample(sample_id)
            before, after = await self.walk.demonstration(sample_id)
            text = arm.instruction(sample) or sample.prompt
            shown.append(Demonstration(before, text, after))
            identity.append([sample_id, text, *benchmark.hashes[sample_id][:2]])
        return tuple(shown), identity

    def _region(self) -> EncodedImage:
        mask = encode_mask(self.walk.benchmark.roi(self.sample))
        return EncodedImage(made_from(mask, self.original.data), PNG)


def wants_retry(attempt: Attempt, outcomes: Collection[OutcomeKind]) -> bool:
    """Whether an output ended in one of these ways, without an image."""
    outcome = attempt.edit_outcome
    return attempt.edited is None and outcome is not None and outcome.kind in outcomes


async def _all(outputs: Iterable[Awaitable[Attempt]]) -> list[Attempt]:
    """All outputs of a task at once: they may wait for one batch job, and local models compute them together.

    Whatever stops one of them, the others in flight finish and are recorded before it is raised.
    """
    made = await asyncio.gather(*outputs, return_exceptions=True)
    stops = [stop for stop in made if isinstance(stop, BaseException)]
    for stop in sorted(stops, key=lambda stop: isinstance(stop, Interrupted)):
        raise stop  # what ends the run, before what merely ended with it
    return [attempt for attempt in made if isinstance(attempt, Attempt)]


def ending_of(attempts: list[Attempt]) -> Ending:
    """How a task with these outputs ends: as success only when every output is an image."""
    lost = [a.edit_outcome for a in attempts if a.edited is None and a.edit_outcome is not None]
    if not lost:
        return Ending(TaskState.SUCCESS, len(attempts))
    kinds = {outcome.kind for outcome in lost}
    if kinds & GAVE_UP:
        state = TaskState.STOPPED
    elif kinds == {OutcomeKind.NOT_APPLICABLE} and len(lost) == len(attempts):
        state = TaskState.NOT_APPLICABLE
    else:
        state = TaskState.FAILED
    return Ending(state, len(attempts), _why(lost, len(attempts)))


def _why(lost: list[Outcome], outputs: int) -> str:
    first = lost[0]
    ending = f"{first.kind.value}: {first.reason}".rstrip(": ")
    return (
        ending if outputs == 1 else f"{len(lost)} of {outputs} outputs without an image; the first: {ending}"
    )
