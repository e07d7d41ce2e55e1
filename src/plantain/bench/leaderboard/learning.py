"""Table 7 (a): an editor trained on n samples of each task, compared with itself without training."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.measures import MAIN, Measure
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.studies import ShotRow, level_rows, shot_studies
from plantain.bench.leaderboard.tables import make_table
from plantain.metrics.statistics.means import mean_of_known
from plantain.models.registry import close_models
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.roles import EditedImage, Editor, EditRequest, Reply
from plantain.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "learning.html"
SEPARATOR = "+n"


def trained_label(size: int, seed: int) -> str:
    """Return the label of the arm trained on `size` samples of each task with one seed; size 0 is untrained."""
    return f"trained{SEPARATOR}{size}-s{seed}"


class TrainedEditor:
    """An editor that sends each sample to the model trained for the sample's task.

    Args:
        name: the editor's name, e.g. "diffusers/trained+n4-s0".
        by_task: the editor of each task.
        task_of: task of each sample by its id.
    """

    def __init__(self, name: str, by_task: Mapping[str, Editor], task_of: Mapping[str, str]) -> None:
        self.name = name
        self._by_task, self._task_of = by_task, task_of
        tasks = [[task, by_task[task].fingerprint] for task in sorted(by_task)]
        self.fingerprint = hashlib.sha256(json.dumps(tasks).encode()).hexdigest()[:16]

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return the edit by the model of the sample's task; `served_model` names all models together."""
        reply = await self._by_task[self._task_of[request.image.id]].edit(request)
        return replace(reply, usage=replace(reply.usage, served_model=f"{self.name}@{self.fingerprint}"))

    async def aclose(self) -> None:
        await close_models(*self._by_task.values())


@dataclass(frozen=True, slots=True)
class Learning:
    """MedEBench's Table 7 (a): scores by the number of training samples.

    Attributes:
        rows: the numbers over all tasks and by task.
        measures: the measures of the columns.
        levels: numbers of training samples; seeds: number of trainings at each.
        judge: judge of EA and VQ; None without one.
        scores: the scores of the run.
    """

    rows: list[ShotRow]
    measures: tuple[Measure, ...]
    levels: tuple[int, ...]
    seeds: Mapping[int, int]
    judge: str | None
    scores: Scores


def learning_of(scores: Scores, judge: str | None = None) -> Learning:
    """Compute Table 7 (a) from a run whose arms have `trained_label`s; seeds of one size are averaged per sample.

    Raises:
        InputError: the run has fewer than two sizes of such arms, or no such judge.
    """
    arms: dict[int, list[str]] = {}
    for arm in scores.arms:
        head, separator, rest = arm.label.partition(SEPARATOR)
        if head == "trained" and separator:
            arms.setdefault(int(rest.partition("-")[0]), []).append(arm.label)
    if len(arms) < 2:
        raise InputError(f"{scores.runs[0]}: no outputs of models trained on different numbers of samples")
    table = make_table(scores, judge)
    measures = tuple(measure for measure in table.measures if measure.name in MAIN)
    rows: list[ShotRow] = []
    for task in ("", *sorted({sample.task for sample in scores.samples})):
        chosen = np.flatnonzero([task in ("", sample.task) for sample in scores.samples])
        for measure in measures:
            levels = {size: _mean_of_seeds(scores, arms[size], measure) for size in sorted(arms)}
            rows += level_rows(scores, "trained", task, measure, levels, chosen)
    seeds = {size: len(labels) for size, labels in arms.items()}
    return Learning(rows, measures, tuple(sorted(arms)), seeds, table.judge, scores)


def _mean_of_seeds(scores: Scores, labels: list[str], measure: Measure) -> Floats:
    values = [scores.values(scores.arm(label), measure.stored) for label in labels]
    return mean_of_known(np.stack(values, axis=1), 1)


def write_learning(run: Path, to: Path, title: str, few_shot: Path | None = None) -> Path:
    """Write MedEBench's Table 7 as HTML and JSON; return the path of the HTML page.

    Args:
        run: folder of the run of the trained models.
        to: the folder to write to.
        title: title of the page.
        few_shot: scored run with demonstrations in the prompt, for Table 7 (b); None omits it.

    Raises:
        InputError: as `learning_of`; or the folder cannot be written to.
    """
    target = html_target(to / PAGE)
    with BenchRun.open(run) as opened:
        learning = learning_of(read_scores(opened))
    studies: dict[str, list[ShotRow]] = {}
    if few_shot is not None:
        with BenchRun.open(few_shot) as opened:
            studies = shot_studies(make_table(read_scores(opened)))
        if not studies:
            raise InputError(
                f"--few-shot {few_shot}: no study with several numbers of demonstrations (--shots)"
            )
    records = [_record(row) for row in learning.rows]
    write_page(target.with_suffix(".json"), json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    environment = page_environment(TEMPLATES, "")
    tasks = list(dict.fromkeys(row.task for row in learning.rows))
    page = environment.get_template("learning.html.j2").render(
        learning=learning, studies=studies, title=title, tasks=tasks, version=__version__
    )
    write_page(target, page)
    return target


def _record(row: ShotRow) -> dict[str, object]:
    mean, change = row.estimate, row.change
    return {
        "task": row.task or "all",
        "n": row.shots,
        "metric": row.metric,
        "value": mean.value,
        "low": mean.low,
        "high": mean.high,
        "samples": mean.n,
        "sources": mean.clusters,
        "change_value": change and change.value,
        "change_low": change and change.low,
        "change_high": change and change.high,
        "p_holm": row.p_holm,
    }
