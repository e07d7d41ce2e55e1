"""Generating: every arm's outputs for every sample, through the same calls, limits and outcomes as a build."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.arm_requests import ArmRequest, PlannedArm
from plantain.bench.generate.arms import Arm, ArmKind
from plantain.bench.generate.plan import MODELS_META, check_wanted, make_plan
from plantain.bench.generate.shots_confusion import score_confusion
from plantain.bench.generate.walk import GenerateObserver, GenerateWalk
from plantain.calls import AdmissionController, ModelClient
from plantain.journal import DiskFull, JournalReader, JsonValue, TaskRow
from plantain.journal.questions.benchmark import arm_states
from plantain.models.registry import close_models, resolve_editor
from plantain.records import TaskState
from plantain.roles import Editor
from plantain.runs.consent import check_consent
from plantain.runs.door import Door
from plantain.runs.opening import begun_with, open_client, open_run
from plantain.runs.pricing import check_prices
from plantain.runs.terms import Terms
from plantain.runs.transport import check_transports, tasks_under_way
from plantain.runs.worker_pool import WorkerPool, interruptible, time_cap

SILENT = GenerateObserver()


@dataclass(slots=True)
class GenerateSummary:
    """What this process did, and whether something stopped it.

    Attributes:
        arms: labels of the arms asked for, in order.
        tasks: tasks of those arms.
        closed: tasks that this process closed, by state.
        made, replayed: calls.
        stopped: None when none of those tasks is pending, else why.
        failed: something is wrong, rather than used up.
        left: which batch jobs go on without us.
    """

    arms: tuple[str, ...] = ()
    tasks: int = 0
    closed: Counter[TaskState] = field(default_factory=Counter)
    made: int = 0
    replayed: int = 0
    stopped: str | None = None
    failed: bool = False
    left: str = ""


class Editors:
    """The editors of a run by their models' names, each made once."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.made: dict[str, Editor] = {}

    def __call__(self, model: str) -> Editor:
        """The editor of that name. Raises InputError as `resolve_editor` does."""
        if model not in self.made:
            self.made[model] = resolve_editor(model, self._door.options(model))
        return self.made[model]


async def generate(
    benchmark: Benchmark,
    run: Path,
    wanted: ArmRequest,
    terms: Terms,
    *,
    seed: int = 0,
    limit: int | None = None,
    observer: GenerateObserver = SILENT,
    on_commit: Callable[[int], None] | None = None,
    accept_model_change: bool = False,
) -> GenerateSummary:
    """Makes what the run lacks of the arms that are wanted, and of the baselines, which are in every run.

    Outputs that a run has are never made again; more seeds, a longer sweep, further arms or added samples only make
    what is missing.

    Args:
        benchmark: whose samples.
        run: the run's folder, made or resumed.
        wanted: editors, grid, demonstrations, outputs made elsewhere.
        terms: under which models are called; its models are `wanted.models`.
        seed: of the run; every output's is drawn from it.
        limit: ask the editors for at most so many outputs; baselines and files, which cost nothing, do not count.
        watch: told how the run goes on.
        on_commit: told the number of durable events so far.
        accept_model_change: go on, and record it, when a provider serves another model than before.

    Raises:
        InputError: the benchmark or an arm is not what this run was begun with; another process holds the run; an
            image may not be sent to a hosted model; an editor cannot do what is asked. Nothing was called then.
    """
    check_prices(terms)
    check_transports(terms)
    check_consent(terms, (sample.image for sample in benchmark.samples))
    door = Door(terms, begun_with(run, MODELS_META))
    jobs = door.jobs
    editors = Editors(door)
    check_wanted(benchmark, wanted, editors, seed)
    journal = await open_run(run, benchmark.name, seed, {"kind": "bench", "seed": seed})
    journal.on_commit = on_commit
    door.gate.journal = journal
    try:
        plan = await make_plan(benchmark, journal, wanted, editors, seed)
        client, gate = await open_client(terms, journal, jobs, accept_model_change=accept_model_change)
        arms = {planned.arm.label: planned for planned in plan.arms}
        walk = GenerateWalk(benchmark, journal, client, seed, arms, wanted.retry, observer)
        pool = WorkerPool(client, on_waiting=observer.waiting)
        counts = _counts(journal.reader, arms)
        observer.planned(sum(counts.values()), counts, gate.budget)
        if jobs.models:
            observer.jobs(lambda: gate.in_jobs)
        async with interruptible(client, observer.stopping), time_cap(terms.limits, journal.reader, pool):
            await _walk_waves(walk, pool, plan.arms, tasks_under_way(terms), limit)
        left = await jobs.close()
        if wanted.shots and not client.stop_requested:
            await score_confusion(benchmark, journal, [planned.arm for planned in plan.arms])
        summary = GenerateSummary(tuple(arms), sum(counts.values()), left=left)
        await _sum_up(summary, walk, pool, gate)
    finally:
        await jobs.close()
        await journal.close()
        await close_models(*editors.made.values())
    return summary


async def _walk_waves(
    walk: GenerateWalk, pool: WorkerPool, planned: Sequence[PlannedArm], at_once: int, limit: int | None
) -> None:
    """Hosted arms, baselines and files together; models whose weights fill the machine one after the other."""
    together = [one for one in planned if not one.alone]
    allowance = _Allowance(limit)
    for wave in (together, *([one] for one in planned if one.alone)):
        arms = {one.arm.label: one.arm for one in wave}
        rows = list(allowance.taken(_pending(walk.journal.reader, wave), arms))
        walk.observer.asks(list(dict.fromkeys(arms[row.task.finding].model for row in rows)))
        await pool.all(rows, walk.carry, at_once, None)
        await close_models(*(one.closable for one in wave if one.alone))


@dataclass(slots=True)
class _Allowance:
    """How many outputs editors may still be asked for; None for any number. One task's outputs are made at once."""

    outputs: int | None
    begun: bool = False

    def taken(self, rows: Iterable[TaskRow], arms: Mapping[str, Arm]) -> Iterator[TaskRow]:
        """The tasks that are done now: those of editors until the outputs are used up, all others."""
        for row in rows:
            arm = arms[row.task.finding]
            if self.outputs is None or arm.kind is not ArmKind.EDITOR:
                yield row
            elif len(arm.grid) <= self.outputs or not self.begun:
                self.outputs, self.begun = self.outputs - len(arm.grid), True
                yield row


def _pending(reader: JournalReader, wave: Sequence[PlannedArm]) -> Iterator[TaskRow]:
    labels = {one.arm.label for one in wave}
    return (row for row in reader.tasks(state=TaskState.PENDING) if row.task.finding in labels)


def _counts(reader: JournalReader, labels: Iterable[str]) -> dict[TaskState, int]:
    """Tasks of these arms by state, every state present."""
    wanted = frozenset(labels)
    counts = dict.fromkeys(TaskState, 0)
    for label, state, n in arm_states(reader):
        if label in wanted:
            counts[state] += n
    return counts


async def _sum_up(
    summary: GenerateSummary, walk: GenerateWalk, pool: WorkerPool, gate: AdmissionController
) -> None:
    """Says what this process did, to its caller and in the run's own session row."""
    client: ModelClient = walk.client
    summary.closed, summary.made, summary.replayed = walk.closed, client.made, client.replayed
    summary.stopped, summary.failed = pool.halted, pool.faulty
    if summary.stopped is None and _counts(walk.journal.reader, walk.arms)[TaskState.PENDING]:
        summary.stopped = "interrupted" if client.stop_requested else "limit"
    detail: dict[str, JsonValue] = {"made": client.made, "limits": gate.told()}
    with contextlib.suppress(DiskFull):  # telemetry is not worth a fault where there is no room for it
        await walk.journal.end_session(client.replayed, detail)
