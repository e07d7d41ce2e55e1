"""Table 7 (a): an editor trained on n samples of each task, compared with itself without training."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.measures import MAIN
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.studies import ShotRow, level_rows, shot_studies
from plantain.bench.leaderboard.tables import Table, make_table
from plantain.metrics.statistics.means import mean_of_known
from plantain.models.registry import close_models
from plantain.pages.publishing import html_target, page_environment, write_page
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


def trained_rows(table: Table) -> list[ShotRow]:
    """Return Table 7 (a) of a run whose arms have `trained_label`s; [] with fewer than two sizes of them.

    Seeds of one size are averaged per sample.
    """
    scores, arms = table.scores, _trained(table.scores)
    if len(arms) < 2:
        return []
    rows: list[ShotRow] = []
    for task in ("", *sorted({sample.task for sample in scores.samples})):
        chosen = np.flatnonzero([task in ("", sample.task) for sample in scores.samples])
        for measure in (measure for measure in table.measures if measure.name in MAIN):
            levels = {}
            for size, labels in sorted(arms.items()):
                values = [scores.values(scores.arm(label), measure.stored) for label in labels]
                levels[size] = mean_of_known(np.stack(values, axis=1), 1)
            rows += level_rows(scores, "trained", task, measure, levels, chosen)
    return rows


def _trained(scores: Scores) -> dict[int, list[str]]:
    """Return the labels of the trained arms, one per seed, by the number of training samples."""
    arms: dict[int, list[str]] = {}
    for arm in scores.arms:
        head, separator, rest = arm.label.partition(SEPARATOR)
        if head == "trained" and separator:
            arms.setdefault(int(rest.partition("-")[0]), []).append(arm.label)
    return arms


def write_learning(run: Path, to: Path, title: str, few_shot: Path | None = None) -> Path:
    """Write MedEBench's Table 7 as HTML and JSON; return the path of the HTML page.

    Args:
        run: folder of the run of the trained models.
        to: the folder to write to.
        title: title of the page.
        few_shot: scored run with demonstrations in the prompt, for Table 7 (b); None omits it.

    Raises:
        InputError: the runs have no such arms, or the folder cannot be written to.
    """
    target = html_target(to / PAGE)
    with BenchRun.open(run) as opened:
        table = make_table(read_scores(opened))
    rows = trained_rows(table)
    if not rows:
        raise InputError(f"{run}: no outputs of models trained on different numbers of samples")
    studies: dict[str, list[ShotRow]] = {}
    if few_shot is not None:
        with BenchRun.open(few_shot) as opened:
            studies = shot_studies(make_table(read_scores(opened)))
        if not studies:
            raise InputError(
                f"--few-shot {few_shot}: no study with several numbers of demonstrations (--shots)"
            )
    text = json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False)
    write_page(target.with_suffix(".json"), text + "\n")
    page = (
        page_environment(TEMPLATES, "")
        .get_template("learning.html.j2")
        .render(
            rows=rows,
            seeds={size: len(labels) for size, labels in sorted(_trained(table.scores).items())},
            judge=table.judge,
            samples=len(table.scores.samples),
            studies=studies,
            title=title,
            version=__version__,
        )
    )
    write_page(target, page)
    return target
