"""`plantain review demo`: a study on the demo's run, with two simulated readers."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import typer

from plantain.cli.build import build_watched
from plantain.cli.review.new import register_study
from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.tables import print_json
from plantain.pipeline.demo import demo_recipe, fill_demo_catalogue
from plantain.records.messages import command_line, next_line
from plantain.review.freezing import StudySettings, new_study
from plantain.review.ratings import Ratings
from plantain.review.simulated import simulate
from plantain.review.sources import materials_of_run
from plantain.review.study import ReaderTask, open_study
from plantain.rubrics import MED_BANANA

NOTICE = "plantain: the two readers of this study are simulated: their answers only show the form of results"


def demo(
    folder: Path = typer.Argument(..., metavar="DIR", help="Folder; created or resumed."),
    limit: int = typer.Option(12, min=1, help="Tasks of the demo's run that are built."),
    as_json: AsJson = False,
) -> None:
    """Build a few edits offline, freeze a study of them, and let two simulated readers answer.

    Example: plantain review demo demo-review
    """
    study, run = folder / "study", folder / "run"
    print(NOTICE, file=sys.stderr)
    if not study.exists():
        fill_demo_catalogue(folder / "catalogue")
        build_watched(demo_recipe(folder), run, limit=limit, quiet=as_json)
        tasks = (
            ReaderTask.ACCEPT,
            ReaderTask.REAL_OR_EDITED,
            ReaderTask.WHICH_FINDING,
            ReaderTask.CHOOSE_ROI,
        )
        found = list(materials_of_run(run))
        settings = StudySettings(
            name="Demo: are these edits good?",
            seed=7,
            tasks=tasks,
            rubric=MED_BANANA,
            training=min(2, len(found) // 2),
            repeats=0.2,
            anchors=1,
        )
        register_study(study, [run], found)
        new_study(study, found, [run.name], settings)
    opened = open_study(study)
    with closing(Ratings.open(opened)) as ratings:
        if not ratings.readers():
            simulate(opened, ratings)
    if as_json:
        print_json({"study": str(study)})
    else:
        print(f"study: {study}\nresults: {command_line('review', 'results', study)}")
        print(next_line("review", "invite", study))
