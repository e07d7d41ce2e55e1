"""Plans a bench run: checks that the benchmark is the one it began with, joins new arms to old, lists the tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arm_requests import (
    ArmRequest,
    ImportedSource,
    PlannedArm,
    baseline_arms,
    check_labels,
    check_rule,
    editor_arms,
    intake_arms,
    restored_arms,
)
from plantain.bench.generate.arms import Arm, ArmKind, bench_task_id, grown
from plantain.bench.generate.restored import RestoredSource
from plantain.bench.generate.runfile import (
    BENCH,
    BenchHeader,
    SampleFacts,
    read_arms,
    read_header,
    read_samples,
    write_bench,
)
from plantain.bench.generate.shots import MOST_SHOTS, ShotStudy, choose_study, recorded_study
from plantain.bench.generate.walk import wants_retry
from plantain.journal import Journal
from plantain.journal.questions.benchmark import arm_tasks
from plantain.records import EditTask, InputError, OutcomeKind, TaskKind, TaskState
from plantain.roles import Editor
from plantain.runs.door import changed_since

MODELS_META = "bench.models"


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """What a process is to do: its arms, and for each the samples that it covers."""

    benchmark: Benchmark
    arms: tuple[PlannedArm, ...]

    def tasks(self) -> Iterator[EditTask]:
        """One task for each arm and sample that it covers."""
        for planned in self.arms:
            for sample in self.benchmark.samples:
                if planned.arm.covers(sample.id):
                    yield EditTask(
                        bench_task_id(sample, planned.arm.label),
                        sample.id,
                        sample.organ,
                        planned.arm.label,
                        sample.direction,
                        TaskKind.BENCH,
                    )


def check_wanted(
    benchmark: Benchmark, wanted: ArmRequest, resolve: Callable[[str], Editor], seed: int
) -> None:
    """Refuses what cannot be, before a run is made for it.

    Raises:
        InputError: an editor cannot do what is asked, two arms have one name, or there is no few-shot study.
    """
    check_rule(wanted.rule)
    _study(benchmark, (), wanted, seed)
    check_labels([*baseline_arms(benchmark), *intake_arms(wanted), *editor_arms(wanted, resolve, None)])


async def make_plan(
    benchmark: Benchmark, journal: Journal, wanted: ArmRequest, resolve: Callable[[str], Editor], seed: int
) -> GenerationPlan:
    """Brings benchmark, arms and tasks of the run up to what is wanted; calls no model.

    Raises:
        InputError: the benchmark or an arm is not what this run was begun with.
    """
    facts = _facts(benchmark, journal)
    recorded = read_arms(journal.reader)
    study = _study(benchmark, recorded.values(), wanted, seed)
    asked = [*baseline_arms(benchmark), *intake_arms(wanted), *editor_arms(wanted, resolve, study)]
    planned = tuple(_grown(one, recorded) for one in asked)
    editors = [one for one in planned if one.arm.kind is ArmKind.EDITOR]
    beside = restored_arms(benchmark, journal.reader, wanted, editors)
    planned += tuple(_grown(one, recorded) for one in beside)
    check_labels(planned)
    await _check_models(journal, planned)
    arms = {**recorded, **{one.arm.label: one.arm for one in planned}}
    header = BenchHeader.of(benchmark.root, benchmark.name, benchmark.digest, journal.run, benchmark.edition)
    plan = GenerationPlan(benchmark, planned)
    await _refresh_outputs(journal, planned)
    await write_bench(journal, header, arms, facts)
    await journal.add_tasks(plan.tasks())
    await journal.extend_tasks(_outgrown(plan, journal))
    await journal.extend_tasks(_to_retry(plan, journal, wanted.retry))
    await journal.reopen_tasks(_came_later(plan, journal))
    return plan


def _grown(one: PlannedArm, recorded: Mapping[str, Arm]) -> PlannedArm:
    known = recorded.get(one.arm.label)
    return one if known is None else replace(one, arm=grown(known, one.arm))


def _facts(benchmark: Benchmark, journal: Journal) -> dict[str, SampleFacts]:
    """What the run is to know of the samples. Raises InputError unless samples were only added."""
    known = read_samples(journal.reader)
    if journal.reader.meta(BENCH) is not None and read_header(journal.reader).digest == benchmark.digest:
        return known
    contents = {sample.id: content_of(benchmark, sample) for sample in benchmark.samples}
    for sample_id, facts in known.items():
        if contents.get(sample_id) != facts.content:
            what = "was changed" if sample_id in contents else "was taken out"
            raise InputError(
                f"{benchmark.root}: sample {sample_id} {what} since {journal.run} was begun; samples can only be "
                "added: use a new --run folder, or restore the benchmark"
            )
    return {
        sample.id: sample_facts(benchmark, sample, contents[sample.id], known.get(sample.id))
        for sample in benchmark.samples
    }


def content_of(benchmark: Benchmark, sample: Sample) -> str:
    """SHA-256 over all of a sample that outputs and scores depend on. Its cluster may change as others are added."""
    parts = [
        *(sample.id, sample.organ, sample.task, sample.prompt, sample.rephrased, sample.detailed),
        *(sample.direction.value, sample.finding),
        *benchmark.hashes[sample.id],
    ]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def sample_facts(
    benchmark: Benchmark, sample: Sample, content: str, known: SampleFacts | None = None
) -> SampleFacts:
    """What scores and tables need of a sample; its region is measured unless that is `known`."""
    share = known.roi_share if known is not None else None
    if share is None and sample.roi is not None:
        share = float(benchmark.roi(sample).mean())
    return SampleFacts(
        id=sample.id,
        organ=sample.organ,
        task=sample.task,
        cluster=sample.cluster,
        prompt=sample.prompt,
        rephrased=sample.rephrased,
        detailed=sample.detailed,
        finding=sample.finding,
        direction=sample.direction.value,
        modality=sample.image.modality,
        licence=sample.image.licence.value,
        size=sample.size,
        has_truth=sample.changed is not None,
        has_roi=sample.roi is not None,
        roi_share=share,
        content=content,
        synthetic_truth=sample.synthetic_truth,
    )


def _study(benchmark: Benchmark, recorded: Iterable[Arm], wanted: ArmRequest, seed: int) -> ShotStudy | None:
    if not wanted.shots:
        return None
    if max(wanted.shots) > MOST_SHOTS:
        raise InputError(f"--shots: {max(wanted.shots)}; a study has {MOST_SHOTS} demonstrations a task")
    return recorded_study(recorded) or choose_study(benchmark.samples, seed)


async def _check_models(journal: Journal, planned: Sequence[PlannedArm]) -> None:
    """Refuses a model that would answer otherwise than when this run asked it first. Raises InputError."""
    asked = [one for one in planned if one.arm.kind in (ArmKind.EDITOR, ArmKind.BASELINE)]
    today = {one.arm.model: one.arm.fingerprint for one in asked}
    today |= {
        f"prompt with demonstrations of {one.arm.model}": one.by_example for one in planned if one.by_example
    }
    changed = await changed_since(journal, MODELS_META, today)
    if changed is not None:
        raise InputError(f"{journal.run}: {changed}")


async def _refresh_outputs(journal: Journal, planned: Sequence[PlannedArm]) -> None:
    """Opens a new generation of tasks whose missing files have come; refuses files that have changed.

    Raises:
        InputError: names the file.
    """
    for one in planned:
        if not isinstance(one.source, ImportedSource):
            continue
        files, come = one.source.intake.files, set[str]()
        for task in arm_tasks(journal.reader, one.arm.label):
            for attempt in journal.reader.attempts(task.id, task.generation):
                taken = files.get((task.sample, attempt.round - 1))
                if taken is None or attempt.raw == taken.sha256:
                    continue
                if attempt.raw is not None:
                    raise InputError(
                        f"--outputs: {taken.path}: not the file that {journal.run} took in before as {one.arm.label}; "
                        "give the new outputs another name with =NAME"
                    )
                if attempt.edit_outcome is not None and attempt.edit_outcome.kind is OutcomeKind.NO_IMAGE:
                    come.add(task.id)
        await journal.reopen_tasks(sorted(come))


def _outgrown(plan: GenerationPlan, journal: Journal) -> list[str]:
    """Closed tasks that have fewer outputs than their arm's grid now asks for."""
    found: list[str] = []
    for planned in plan.arms:
        wanted = len(planned.arm.grid)
        found += [
            task.id
            for task in arm_tasks(journal.reader, planned.arm.label)
            if task.state is not TaskState.PENDING and 0 < task.round < wanted
        ]
    return found


def _came_later(plan: GenerationPlan, journal: Journal) -> list[str]:
    """Closed tasks of restored arms that lack an output which the editor has made since."""
    found: list[str] = []
    for planned in plan.arms:
        if isinstance(planned.source, RestoredSource):
            for task in arm_tasks(journal.reader, planned.arm.label):
                made = journal.reader.attempts(task.id, task.generation)
                if task.state is not TaskState.PENDING and planned.source.came_later(task.sample, made):
                    found.append(task.id)
    return found


def _to_retry(plan: GenerationPlan, journal: Journal, outcomes: Collection[OutcomeKind]) -> list[str]:
    """Closed tasks of editors with an output that ended in one of these ways."""
    found: list[str] = []
    for planned in plan.arms if outcomes else ():
        if planned.arm.kind is not ArmKind.EDITOR:
            continue
        for task in arm_tasks(journal.reader, planned.arm.label):
            if task.state is not TaskState.PENDING and any(
                wants_retry(attempt, outcomes)
                for attempt in journal.reader.attempts(task.id, task.generation)
            ):
                found.append(task.id)
    return found
