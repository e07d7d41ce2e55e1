"""Measuring what a study trained: generate, score and tabulate on the held-out samples, through the benchmark."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.leaderboard.learning import TrainedEditor, trained_label, write_learning
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.cli.bench.generate import generate_progress
from plantain.cli.terminal.stages import StageProgress
from plantain.offline.workers import close_workers
from plantain.roles import Editor
from plantain.runs.door import Door
from plantain.runs.settings.terms import Terms

NONE = "none"


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """What is to be measured.

    Attributes:
        held_out: samples that no model learned from.
        seeds: trainings per task and size.
        sizes: samples learned from; 0 is the base.
        folders: of each trained editor, by (task, size, seed).
        base: folder of the base.
    """

    held_out: Benchmark
    seeds: int
    sizes: tuple[int, ...]
    folders: Mapping[tuple[str, int, int], Path]
    base: Path


async def measure_trained(
    trained: MeasuredModel, run: Path, title: str, terms: Terms, judge: str, *, quiet: bool
) -> tuple[int, Path | None]:
    """Generates and scores what is missing; returns the exit code, and the page of Table 7 (a) when all is there."""
    own = _editors(trained, terms)
    with generate_progress(quiet=quiet) as progress:
        made = await generate(trained.held_out, run, ArmRequest(own=own), terms, observer=progress)
    if made.stopped is not None:
        return _stopped(made.stopped, failed=made.failed), None
    described = any(sample.detailed for sample in trained.held_out.samples)
    judges = () if judge == NONE else (JudgeName(judge, "D" if described else "P", True, None),)
    asked = replace(terms, models=tuple(name.model for name in judges))
    try:
        with StageProgress(quiet=quiet) as progress:
            scored = await score_run(
                run, trained.held_out, ScoreRequest(judges=judges), terms=asked, observer=progress
            )
    finally:
        close_workers()
    if scored.stopped is not None:
        return _stopped(scored.stopped, failed=scored.failed), None
    return 0, write_learning(run, run.parent, title)


def _editors(trained: MeasuredModel, terms: Terms) -> dict[str, Editor]:
    """The base, and for each size and seed the models of all tasks as one editor."""
    door = Door(terms)
    task_of = {sample.id: sample.task for sample in trained.held_out.samples}
    editors: dict[str, Editor] = {}
    for size in trained.sizes:
        for seed in range(trained.seeds if size else 1):
            by_task = {
                task: door.editor(f"diffusers/{trained.folders[task, size, seed] if size else trained.base}")
                for task in sorted(set(task_of.values()))
            }
            label = trained_label(size, seed)
            editors[label] = TrainedEditor(f"diffusers/{label}", by_task, task_of)
    return editors


def _stopped(why: str, *, failed: bool) -> int:
    print(f"plantain: stopped ({why}); type the same command to go on", file=sys.stderr)
    return 1 if failed else 3
