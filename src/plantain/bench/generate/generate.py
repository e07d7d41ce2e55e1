"""Generating: every arm's outputs for every sample, through the same calls, limits and outcomes as a build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.arm_requests import ArmRequest, PlannedArm
from plantain.bench.generate.arms import Arm, ArmKind
from plantain.bench.generate.plan import check_wanted, make_plan
from plantain.bench.generate.shots_confusion import score_confusion
from plantain.bench.generate.walk import GenerateWalk
from plantain.journal import JournalReader, TaskRow
from plantain.journal.questions.benchmark import arm_states
from plantain.models.registry import close_models
from plantain.records import TaskState
from plantain.runs.door import Beginning, Door
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.open_run import OpenRun
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary


async def generate(
    benchmark: Benchmark,
    run: Path,
    wanted: ArmRequest,
    terms: Terms,
    *,
    seed: int = 0,
    limit: int | None = None,
    observer: ProgressObserver = SILENT,
    on_commit: Callable[[int], None] | None = None,
    accept_model_change: bool = False,
) -> RunSummary:
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
        observer: told how the run goes on.
        on_commit: told the number of durable events so far.
        accept_model_change: go on, and record it, when a provider serves another model than before.

    Raises:
        InputError: the benchmark or an arm is not what this run was begun with; another process holds the run; an
            image may not be sent to a hosted model; an editor cannot do what is asked. Nothing was called then.
    """
    door = Door(terms)
    door.check(images=(sample.image for sample in benchmark.samples))
    wanted = replace(wanted, own={label: door.guarded(editor) for label, editor in wanted.own.items()})
    check_wanted(benchmark, wanted, door.editor, seed)
    beginning = Beginning(benchmark.name, seed, {"kind": "bench", "seed": seed})
    async with door.open(
        run,
        beginning,
        observer=observer,
        on_commit=on_commit,
        accept_model_change=accept_model_change,
    ) as opened:
        plan = await make_plan(benchmark, opened.journal, wanted, door.editor, seed)
        arms = {planned.arm.label: planned for planned in plan.arms}
        reader = opened.journal.reader
        opened.planned(_counts(reader, arms), lambda: _counts(reader, arms)[TaskState.PENDING] > 0)
        await _walk_waves(GenerateWalk(benchmark, opened, seed, arms, wanted.retry), opened, plan.arms, limit)
        if wanted.shots and not opened.stopping:
            await score_confusion(benchmark, opened.journal, [planned.arm for planned in plan.arms])
    return opened.summary


async def _walk_waves(
    walk: GenerateWalk, opened: OpenRun, planned: Sequence[PlannedArm], limit: int | None
) -> None:
    """Hosted arms, baselines and files together; models whose weights fill the machine one after the other."""
    restored = [one for one in planned if one.arm.kind is ArmKind.RESTORED]
    together = [one for one in planned if not one.alone and one not in restored]
    allowance = _Allowance(limit)
    for wave in (together, *([one] for one in planned if one.alone), restored):
        arms = {one.arm.label: one.arm for one in wave}
        rows = list(allowance.taken(_pending(opened.journal.reader, wave), arms))
        if any(one.alone for one in wave):  # images of one size go through the weights together
            rows.sort(key=lambda row: walk.benchmark.sample(row.task.image_id).size)
        opened.observer.asks(list(dict.fromkeys(arms[row.task.finding].model for row in rows)))
        await opened.walk(rows, walk.carry)
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
    arms = {one.arm.label: one for one in wave}
    return (
        row
        for row in reader.tasks(state=TaskState.PENDING)
        if row.task.finding in arms and arms[row.task.finding].ready(row)
    )


def _counts(reader: JournalReader, labels: Iterable[str]) -> dict[TaskState, int]:
    """Tasks of these arms by state, every state present."""
    wanted = frozenset(labels)
    counts = dict.fromkeys(TaskState, 0)
    for label, state, n in arm_states(reader):
        if label in wanted:
            counts[state] += n
    return counts
