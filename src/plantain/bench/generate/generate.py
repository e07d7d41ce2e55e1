"""Generate every arm's outputs for every sample, with the calls, limits and outcomes of a build."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from plantain.bench.benchmark.benchmark import Benchmark, resized_bicubic
from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.plan import make_plan, wanted_study, wants_retry
from plantain.bench.generate.requests import ArmRequest, PlannedArm, model_of, planned_arms
from plantain.bench.generate.runfile import PNG, Arm, ArmKind, changed_of, output_seed, previous_of
from plantain.calls import CallSpec, Interrupted, TaskCalls
from plantain.journal import CallResult, Journal, JournalReader, TaskRow
from plantain.journal.questions.benchmark import arm_states
from plantain.models.registry import close_models
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode_output, sha256_of_pixels
from plantain.pixels.encode import encode_mask, holds_pixels_only
from plantain.privacy.permission import made_from
from plantain.records import OK, Attempt, Direction, Outcome, OutcomeKind, Step, TaskState
from plantain.roles import Demonstration, EditedImage, EditRequest, EncodedImage, Reply
from plantain.runs.open_run import OpenRun
from plantain.runs.progress import SILENT, ProgressObserver, RunSummary
from plantain.runs.setup import NewRun, RunSetup
from plantain.runs.terms import Terms

GAVE_UP = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.TRANSPORT})
"""The model never answered, after all retries."""


async def generate(
    benchmark: Benchmark,
    run: Path,
    wanted: ArmRequest,
    terms: Terms,
    *,
    seed: int = 0,
    limit: int | None = None,
    observer: ProgressObserver = SILENT,
    accept_model_change: bool = False,
) -> RunSummary:
    """Generate the missing outputs of the requested editors, and of the baselines, which are in every run.

    Existing outputs are never made again; more seeds, a longer sweep, further arms or added samples only add outputs.

    Args:
        benchmark: the benchmark whose samples are edited.
        run: the run's folder, made or resumed.
        wanted: editors, grid, demonstrations, outputs made elsewhere.
        terms: limits and consent under which models are called; its models are `wanted.models`.
        seed: the run's seed; every output's seed is derived from it.
        limit: maximum number of outputs to request from editors; baselines and files do not count.
        observer: receives progress.
        accept_model_change: continue, and record it, when a provider serves another model than before.

    Raises:
        InputError: the benchmark or an arm is not the recorded one; another process uses the run; an image may not be
            sent to a hosted model; an editor does not support the request. No model was called.
    """
    setup = RunSetup(terms)
    images = (sample.image for sample in benchmark.samples)
    setup.check(images=images, named=map(model_of, wanted.names), by="--editor")
    wanted = replace(wanted, own={label: setup.guarded(editor) for label, editor in wanted.own.items()})
    wanted_study(benchmark, (), wanted, seed)  # both raise an InputError before a run folder is made
    planned_arms(benchmark, wanted, setup.editor, None)
    new = NewRun(benchmark.name, seed, {"kind": "bench", "seed": seed})
    async with setup.open(run, new, observer=observer, accept_model_change=accept_model_change) as opened:
        planned = await make_plan(benchmark, opened.journal, wanted, setup.editor, seed)
        arms = {one.arm.label: one for one in planned}
        reader = opened.journal.reader
        opened.planned(_counts(reader, arms), lambda: _counts(reader, arms)[TaskState.PENDING] > 0)
        generation = _Generation(benchmark, opened, seed, arms, wanted.retry)
        await _run_arms(generation, planned, limit)
    return opened.summary


async def _run_arms(generation: _Generation, arms: Sequence[PlannedArm], limit: int | None) -> None:
    """Run hosted arms, baselines and files together, then models that fill the machine one by one."""
    opened = generation.opened
    together = [one for one in arms if not one.alone]
    left, started = limit, False

    def allowed(arm: Arm) -> bool:
        """Return True until editors have used up their outputs; they make those of at least one task."""
        nonlocal left, started
        if left is None or arm.kind is not ArmKind.EDITOR:
            return True
        if started and len(arm.grid) > left:
            return False
        left, started = left - len(arm.grid), True
        return True

    for wave in (together, *([one] for one in arms if one.alone)):
        by_label = {one.arm.label: one for one in wave}
        pending = _pending(opened.journal.reader, by_label)
        rows = [row for row in pending if allowed(by_label[row.task.finding].arm)]
        if any(one.alone for one in wave):  # images of one size are batched through the weights
            rows.sort(key=lambda row: generation.benchmark.sample(row.task.image_id).size)
        models = list(dict.fromkeys(by_label[row.task.finding].arm.model for row in rows))
        opened.observer.asks(models, None if limit is None else len(rows))
        await opened.walk(rows, generation.run_task)
        await close_models(*(one.source for one in wave if one.alone))


def _pending(reader: JournalReader, arms: Mapping[str, PlannedArm]) -> Iterator[TaskRow]:
    rows = reader.tasks(state=TaskState.PENDING)
    return (row for row in rows if row.task.finding in arms)


def _counts(reader: JournalReader, labels: Iterable[str]) -> dict[TaskState, int]:
    """Return tasks of these arms by state, every state present."""
    wanted = frozenset(labels)
    counts = dict.fromkeys(TaskState, 0)
    for label, state, n in arm_states(reader):
        if label in wanted:
            counts[state] += n
    return counts


@dataclass(slots=True)
class _Generation:
    """The state that the tasks of a bench run share; outputs with an outcome in `retry` are requested again."""

    benchmark: Benchmark
    opened: OpenRun
    seed: int
    arms: Mapping[str, PlannedArm]
    retry: frozenset[OutcomeKind]
    shown: dict[str, tuple[EncodedImage, EncodedImage]] = field(default_factory=dict)

    async def run_task(self, row: TaskRow) -> None:
        """Make the missing outputs of a task, and close it."""
        planned = self.arms[row.task.finding]
        sample = self.benchmark.sample(row.task.image_id)
        if obstacle := planned.obstacle(sample):
            await self.opened.close_task(row.id, TaskState.NOT_APPLICABLE, 0, obstacle)
            return
        reader = self.opened.journal.reader
        recorded = reader.attempts(row.id, row.generation)
        made = {one.round: one for one in recorded if not wants_retry(one, self.retry)}
        missing = [k for k in range(len(planned.arm.grid)) if k + 1 not in made]
        if missing:
            original, sha256 = await previous_of(self.benchmark, self.opened.journal, sample)
            draws = Counter(call.key.round for call in reader.calls(row.id, row.generation) if call.final)
            calls = self.opened.calls(row.id, row.generation)
            task = _Task(self, row, planned, sample, original, sha256, calls)
            self.opened.client.replayed += len(made)
            for attempt in await _all(task.make(k, draws[k + 1]) for k in missing):
                made[attempt.round] = attempt
        state, reason = ending_of([made[number] for number in sorted(made)])
        await self.opened.close_task(row.id, state, len(made), reason)

    async def demonstration(self, sample_id: str) -> tuple[EncodedImage, EncodedImage]:
        """Return a demonstration's image before and after; cached, as all samples of a task are shown the same few."""
        if sample_id not in self.shown:
            sample = self.benchmark.sample(sample_id)
            before, _ = await previous_of(self.benchmark, self.opened.journal, sample)
            self.shown[sample_id] = (before, await changed_of(self.benchmark, sample, before))
        return self.shown[sample_id]


@dataclass(slots=True)
class _Task:
    """The outputs of one task, each a memoised call."""

    generation: _Generation
    row: TaskRow
    planned: PlannedArm
    sample: Sample
    original: EncodedImage
    sha256: str
    calls: TaskCalls

    async def make(self, k: int, draw: int) -> Attempt:
        """Return output k, with its image or with the reason for a missing image. `draw` counts earlier calls."""
        request, identity = await self._request(k)
        attempt = Attempt(self.row.id, self.row.generation, k + 1, request.instruction)

        async def send() -> Reply[EditedImage]:
            return await self.planned.output(request, k)

        async def settle(reply: Reply[EditedImage], draft: CallResult) -> CallResult:
            if reply.value is None:
                return replace(draft, attempt=replace(attempt, edit_outcome=reply.outcome))
            journal = self.generation.opened.journal
            return await asyncio.to_thread(
                keep_output, journal, attempt, reply.value, draft, self.sample.size
            )

        arm = self.planned.arm
        local = arm.kind is not ArmKind.EDITOR
        answer = await self.calls.answer(
            CallSpec(Step.EDIT, k + 1, draw, arm.model, identity, send, settle, local)
        )
        edited = orjson.loads(answer.text)["edited"] if answer.outcome.ok else None
        return replace(attempt, edit_outcome=answer.outcome, edited=edited)

    async def _request(self, k: int) -> tuple[EditRequest, dict[str, object]]:
        """Return the request of an output, and all that identifies it."""
        arm, sample, point = self.planned.arm, self.sample, self.planned.arm.grid[k]
        concept = sample.finding or sample.key_concept
        direction = None if sample.direction is Direction.CHANGE else sample.direction
        shown, shown_identity = await self._demonstrations()
        request = EditRequest(
            replace(sample.image, id=sample.id, prepared_sha256=self.sha256),
            self.original,
            arm.instruction(sample),
            output_seed(self.generation.seed, sample.id, point.seed),
            demonstrations=shown,
            region=await asyncio.to_thread(self._region) if arm.region else None,
            parameters=point.parameters,
            concept=concept,
            direction=direction,
        )
        identity: dict[str, object] = {
            "fingerprint": arm.fingerprint,
            "seed": request.seed,
            "image": self.sha256,
            "instruction": request.instruction,
            "parameters": dict(point.parameters),
            "about": [concept, direction],
        }
        if shown:
            identity["demonstrations"] = [self.planned.by_example, *shown_identity]
        if request.region is not None:
            identity["region"] = hashlib.sha256(request.region.data).hexdigest()
        return request, identity

    async def _demonstrations(self) -> tuple[tuple[Demonstration, ...], list[object]]:
        """Return the first of the study's demonstrations for this task, as many as the arm shows."""
        arm, benchmark = self.planned.arm, self.generation.benchmark
        shown: list[Demonstration] = []
        identity: list[object] = []
        for sample_id in arm.demonstrations[self.sample.task][: arm.shots] if arm.shots else ():
            sample = benchmark.sample(sample_id)
            before, after = await self.generation.demonstration(sample_id)
            text = arm.instruction(sample) or sample.prompt
            shown.append(Demonstration(before, text, after))
            identity.append([sample_id, text, *benchmark.hashes[sample_id][:2]])
        return tuple(shown), identity

    def _region(self) -> EncodedImage:
        mask = encode_mask(self.generation.benchmark.roi(self.sample))
        return EncodedImage(made_from(mask, self.original.data), PNG)


async def _all(outputs: Iterable[Awaitable[Attempt]]) -> list[Attempt]:
    """Make all outputs of a task at once: they may share one batch job, and local models compute them together.

    If one of them stops, the others in flight finish and are recorded before it is raised.
    """
    made = await asyncio.gather(*outputs, return_exceptions=True)
    stops = [stop for stop in made if isinstance(stop, BaseException)]
    for stop in sorted(stops, key=lambda stop: isinstance(stop, Interrupted)):
        raise stop  # the cause before its consequences
    return [attempt for attempt in made if isinstance(attempt, Attempt)]


def ending_of(attempts: Sequence[Attempt]) -> tuple[TaskState, str]:
    """Return (the state of a task with these outputs, the reason for missing images; "" if none is missing)."""
    lost = [a.edit_outcome for a in attempts if a.edited is None and a.edit_outcome is not None]
    if not lost:
        return TaskState.SUCCESS, ""
    kinds = {outcome.kind for outcome in lost}
    if kinds & GAVE_UP:
        state = TaskState.STOPPED
    elif kinds == {OutcomeKind.NOT_APPLICABLE} and len(lost) == len(attempts):
        state = TaskState.NOT_APPLICABLE
    else:
        state = TaskState.FAILED
    first = f"{lost[0].kind.value}: {lost[0].reason}".rstrip(": ")
    if len(attempts) > 1:
        first = f"{len(lost)} of {len(attempts)} outputs without an image; the first: {first}"
    return state, first


ANOTHER_RATIO, ASPECT_TOLERANCE = "another ratio of sides", 0.01
"""An output whose aspect ratio differs by more than this from the sample's is malformed."""

POLICY = "bicubic to the size of the previous image (antialiased, as Pillow does it)"
"""Treatment of an output of another size, as published; recorded with each."""


def at_own_size(data: bytes, size: tuple[int, int]) -> tuple[bytes, Pixels, str]:
    """Convert an editor's file to a PNG of the sample's size; return PNG, pixels and a note on resizing.

    Args:
        data: an image file of any supported kind.
        size: (width, height) of the sample's previous image, in pixels.

    Returns:
        The PNG, lossless and without metadata; the same, decoded: uint8 RGB (H, W, 3); one line on how it was resized,
        "" if it was not.

    Raises:
        BadImage: it cannot be decoded, or has another aspect ratio.
    """
    pixels = decode_output(data)
    height, width = pixels.shape[:2]
    ratio = (width / height) / (size[0] / size[1])
    if abs(ratio - 1.0) > ASPECT_TOLERANCE:
        raise BadImage(
            f"the output is {width}x{height} pixels, {size[0]}x{size[1]} in the benchmark: {ANOTHER_RATIO}"
        )
    if (width, height) == size:
        return data if holds_pixels_only(data) else encode_png(pixels), pixels, ""
    pixels = resized_bicubic(pixels, size)
    return encode_png(pixels), pixels, f"resized from {width}x{height}: {POLICY}"


def keep_output(
    journal: Journal, attempt: Attempt, edited: EditedImage, draft: CallResult, size: tuple[int, int]
) -> CallResult:
    """Store an output as received and at the sample's size; return the completed result. Blocking I/O.

    An output that cannot be read is only stored as received, and the result has the outcome MALFORMED.

    Args:
        attempt, draft: attempt and result of the call, without the image.
        edited: the editor's output.
        size: (width, height) of the sample in pixels.
    """
    raw = journal.put_blob(edited.image.data, edited.image.media_type)
    try:
        png, pixels, resized = at_own_size(edited.image.data, size)
    except BadImage as error:
        outcome = Outcome(OutcomeKind.MALFORMED, str(error))
        lost = replace(attempt, edit_outcome=outcome, raw=raw.sha256)
        return replace(draft, outcome=outcome, attempt=lost, blobs=(raw,))
    stored = raw if png == edited.image.data else journal.put_blob(png, PNG)
    image = replace(stored, pixel_sha256=sha256_of_pixels(pixels))
    mask = None if edited.mask is None else journal.put_blob(edited.mask.data, edited.mask.media_type)
    notes = "; ".join(filter(None, (edited.note, resized)))
    made = replace(draft, raw=draft.raw or notes)
    kept = replace(attempt, edit_outcome=OK, support=edited.support)
    return made.with_edit(kept, raw, image, mask, note=notes)
