"""Measuring trained editors: generate, score and tabulate the held-out samples, as for any benchmark."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
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

NO_JUDGE = "none"


async def measure_trained(
    held_out: Benchmark,
    folders: Mapping[tuple[int, int], Mapping[str, Path]],
    run: Path,
    title: str,
    terms: Terms,
    judge: str,
    *,
    quiet: bool,
    few_shot: Path | None = None,
) -> tuple[int, Path | None]:
    """Generate and score what is missing; return the exit code, and the page of Table 7 when complete.

    Args:
        held_out: samples that no model was trained on.
        folders: for each (size, seed), the folder of each task's model; size 0 is the base.
        run: folder of the benchmark run.
        title: of the page.
        terms: of the editors.
        judge: "provider/model", or `NO_JUDGE` for metrics only.
        quiet: show no progress.
        few_shot: run of Table 7 (b), shown beside (a).
    """
    door = Door(terms)
    task_of = {sample.id: sample.task for sample in held_out.samples}
    editors: dict[str, Editor] = {}
    for (size, seed), by_task in sorted(folders.items()):
        label = trained_label(size, seed)
        models = {task: door.editor(f"diffusers/{folder}") for task, folder in sorted(by_task.items())}
        editors[label] = TrainedEditor(f"diffusers/{label}", models, task_of)
    with generate_progress(quiet=quiet) as progress:
        made = await generate(held_out, run, ArmRequest(own=editors), terms, observer=progress)
    if made.stopped is not None:
        return _stopped(made.stopped, failed=made.failed), None
    described = any(sample.detailed for sample in held_out.samples)
    judges = () if judge == NO_JUDGE else (JudgeName(judge, "D" if described else "P", True, None),)
    asked = replace(terms, models=tuple(name.model for name in judges))
    try:
        with StageProgress(quiet=quiet) as stages:
            scored = await score_run(run, held_out, ScoreRequest(judges=judges), terms=asked, observer=stages)
    finally:
        close_workers()
    if scored.stopped is not None:
        return _stopped(scored.stopped, failed=scored.failed), None
    return 0, write_learning(run, run.parent, title, few_shot)


def _stopped(why: str, *, failed: bool) -> int:
    print(f"plantain: stopped ({why}); run the same command to resume", file=sys.stderr)
    return 1 if failed else 3
