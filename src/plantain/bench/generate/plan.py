"""Plan a bench run: check that its benchmark and arms are the recorded ones, add new arms, list the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.output_files import ImportedOutputs
from plantain.bench.generate.requests import ArmRequest, PlannedArm, grown, planned_arms
from plantain.bench.generate.runfile import (
    BENCH,
    Arm,
    ArmKind,
    BenchHeader,
    SampleFacts,
    bench_task_id,
    read_arms,
    read_header,
    read_samples,
    write_bench,
)
from plantain.bench.generate.shots import ShotStudy, choose_study, recorded_study
from plantain.journal import Journal
from plantain.journal.questions.benchmark import arm_tasks
from plantain.records import Attempt, EditTask, InputError, OutcomeKind, TaskKind, TaskState
from plantain.roles import Editor
from plantain.runs.setup import changed_since

MODELS_META = "bench.models"


async def make_plan(
    benchmark: Benchmark, journal: Journal, wanted: ArmRequest, resolve: Callable[[str], Editor], seed: int
) -> tuple[PlannedArm, ...]:
    """Add the request's samples, arms and tasks to the run and return the request's arms; no model is called.

    Args:
        benchmark: the benchmark.
        journal: the run's journal.
        wanted: the requested arms.
        resolve: returns the editor of a model's name.
        seed: seed by which a few-shot study is chosen.

    Raises:
        InputError: an editor does not support the request, two arms have one name, no task fits a few-shot study, or
            the benchmark or an arm is not the one that this run was started with.
    """
    facts = _facts(benchmark, journal)
    recorded = read_arms(journal.reader)
    study = wanted_study(benchmark, recorded.values(), wanted, seed)
    asked = planned_arms(benchmark, wanted, resolve, study)
    arms = tuple(
        replace(one, arm=grown(recorded[one.arm.label], one.arm)) if one.arm.label in recorded else one
        for one in asked
    )
    await _check_models(journal, arms)
    await journal.reopen_tasks(_arrived_files(journal, arms))
    all_arms = recorded | {one.arm.label: one.arm for one in arms}
    header = BenchHeader.of(benchmark, journal.run)
    await write_bench(journal, header, all_arms.values(), facts)
    await journal.add_tasks(_tasks(benchmark, arms))
    await journal.extend_tasks(_incomplete(journal, arms, wanted.retry))
    return arms


def _tasks(benchmark: Benchmark, arms: Iterable[PlannedArm]) -> Iterator[EditTask]:
    """Yield one task for each arm and sample that it covers."""
    for label, arm in ((planned.arm.label, planned.arm) for planned in arms):
        for sample in benchmark.samples:
            if arm.covers(sample.id):
                task_id = bench_task_id(sample, label)
                yield EditTask(task_id, sample.id, sample.organ, label, sample.direction, TaskKind.BENCH)


def _facts(benchmark: Benchmark, journal: Journal) -> dict[str, SampleFacts]:
    """Return the facts of the samples. Raises InputError unless samples were only added."""
    known = read_samples(journal.reader)
    if journal.reader.meta(BENCH) is not None and read_header(journal.reader).digest == benchmark.digest:
        return known
    contents = {sample.id: benchmark.content_of(sample) for sample in benchmark.samples}
    for sample_id, facts in known.items():
        if contents.get(sample_id) != facts.content:
            what = "changed" if sample_id in contents else "was removed"
            raise InputError(
                f"{benchmark.root}: sample {sample_id} {what} since {journal.run} was started; samples can only be "
                "added: use a new --run folder, or restore the benchmark"
            )
    return {s.id: sample_facts(benchmark, s) for s in benchmark.samples}


def sample_facts(benchmark: Benchmark, sample: Sample) -> SampleFacts:
    """Return the facts of a sample that tables need."""
    return SampleFacts(
        id=sample.id,
        organ=sample.organ,
        task=sample.task,
        cluster=sample.cluster,
        prompt=sample.prompt,
        detailed=sample.detailed,
        licence=sample.image.licence.value,
        has_truth=sample.changed is not None,
        content=benchmark.content_of(sample),
        synthetic_truth=sample.synthetic_truth,
    )


def wanted_study(
    benchmark: Benchmark, recorded: Iterable[Arm], wanted: ArmRequest, seed: int
) -> ShotStudy | None:
    """Return the few-shot study of a request: the recorded one, else a new one; None if it has no shots."""
    if not wanted.shots:
        return None
    most = max(wanted.shots)
    study = recorded_study(recorded)
    if study is None:
        return choose_study(benchmark.samples, seed, named=wanted.tasks, most=most)
    if wanted.tasks and set(wanted.tasks) != set(study.demonstrations):
        raise InputError(f"--task: this run's study is of {', '.join(study.demonstrations)}; use a new run")
    has = min(map(len, study.demonstrations.values()))
    if most > has:
        raise InputError(
            f"--shots: {most}; this run's study has {has} demonstrations of a task; use a new run"
        )
    return study


async def _check_models(journal: Journal, arms: Sequence[PlannedArm]) -> None:
    """Refuse a model whose fingerprint differs from the one that this run called first. Raises InputError."""
    called = [one for one in arms if one.arm.kind in (ArmKind.EDITOR, ArmKind.BASELINE)]
    today = {one.arm.model: one.arm.fingerprint for one in called}
    today |= {
        f"prompt with demonstrations of {one.arm.model}": one.by_example for one in arms if one.by_example
    }
    for model in today:
        if model.startswith("python/"):
            await _take_changed_function(journal, model, today[model])
    if (changed := await changed_since(journal, MODELS_META, today)) is not None:
        raise InputError(f"{journal.run}: {changed}")


async def _take_changed_function(journal: Journal, model: str, fingerprint: str) -> None:
    """Record a changed Python function and reopen its tasks. Raises InputError if one has an image or an open call."""
    reader = journal.reader
    known: dict[str, str] = orjson.loads(reader.meta(MODELS_META) or "{}")
    if known.get(model, fingerprint) == fingerprint:
        return
    arms = [label for label, arm in read_arms(reader).items() if arm.model == model]
    tasks = [task for label in arms for task in arm_tasks(reader, label)]
    started = []
    for task in tasks:
        calls = reader.calls(task.id, task.generation) if task.state is TaskState.PENDING else ()
        started += [task.id] * bool(calls)
        running = any(call.outcome is None or call.outcome.ok for call in calls)
        if running or any(made.edited for made in reader.attempts(task.id, task.generation)):
            raise InputError(
                f"{journal.run}: {model} changed, and this run has outputs of the earlier version; "
                "give the new one another name: --editor FILE.py:FUNCTION=NAME"
            )
    for task_id in started:  # stopped between two outputs, or before a failed call was repeated
        await journal.close_task(task_id, TaskState.STOPPED, 1, "its editor changed")
    await journal.reopen_tasks([task.id for task in tasks])
    await journal.set_meta(MODELS_META, orjson.dumps(known | {model: fingerprint}).decode())


def _arrived_files(journal: Journal, arms: Sequence[PlannedArm]) -> list[str]:
    """Return tasks whose missing files exist now. Raises InputError for a file that has changed."""
    arrived: set[str] = set()
    for one in arms:
        if not isinstance(one.source, ImportedOutputs):
            continue
        for task in arm_tasks(journal.reader, one.arm.label):
            for attempt in journal.reader.attempts(task.id, task.generation):
                path, sha256 = one.source.files.get((task.sample, attempt.round - 1), (None, ""))
                if path is None or attempt.raw == sha256:
                    continue
                if attempt.raw is not None:
                    raise InputError(
                        f"--outputs: {path}: not the file that {journal.run} imported before as {one.arm.label}; "
                        "give the new outputs another name with =NAME"
                    )
                if attempt.edit_outcome is not None and attempt.edit_outcome.kind is OutcomeKind.NO_IMAGE:
                    arrived.add(task.id)
    return sorted(arrived)


def _incomplete(journal: Journal, arms: Sequence[PlannedArm], retry: frozenset[OutcomeKind]) -> list[str]:
    """Return closed tasks with fewer outputs than their arm's grid, or of editors with an output to retry."""
    found: list[str] = []
    for one in arms:
        retried = retry if one.arm.kind is ArmKind.EDITOR else frozenset()
        for task in arm_tasks(journal.reader, one.arm.label):
            if task.state is TaskState.PENDING:
                continue
            attempts = journal.reader.attempts(task.id, task.generation) if retried else []
            if 0 < task.round < len(one.arm.grid) or any(wants_retry(a, retried) for a in attempts):
                found.append(task.id)
    return found


def wants_retry(attempt: Attempt, outcomes: frozenset[OutcomeKind]) -> bool:
    """Return True if an output ended with one of these outcomes, without an image."""
    outcome = attempt.edit_outcome
    return attempt.edited is None and outcome is not None and outcome.kind in outcomes
