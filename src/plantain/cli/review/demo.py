"""`plantain review demo`: a study on the demo's run, with two simulated readers."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import typer

from plantain.cli.build import build_watched
from plantain.cli.review.materials import register_study
from plantain.cli.terminal.options import AsJson, Port
from plantain.pipeline.demo import demo_recipe, fill_demo_catalogue
from plantain.records.commands import command_line
from plantain.review.freezing import StudySettings, new_study
from plantain.review.ratings import READER, Ratings
from plantain.review.simulated import simulate
from plantain.review.sources import materials_of_run
from plantain.review.study import ReaderTask, open_study
from plantain.rubrics import MED_BANANA

NOTICE = "plantain: the two readers of this study are simulated: their answers only show the form of results"


def demo(
    folder: Path = typer.Argument(..., metavar="DIR", help="Folder; created or resumed."),
    limit: int = typer.Option(12, min=1, help="Tasks of the demo's run that are built."),
    serve: bool = typer.Option(True, "--serve/--no-serve", help="Serve the study afterwards."),
    port: Port = 8765,
    as_json: AsJson = False,
) -> None:
    """Build a few edits offline, freeze a study of them, let two simulated readers answer, and serve it.

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
        token = ratings.invite(READER)[1] if serve else ""
    if as_json:
        import orjson

        print(orjson.dumps({"study": str(study)}).decode(), flush=True)
    else:
        print(f"study: {study}\nresults: {command_line('review', 'results', study)}", flush=True)
    if serve:
        from plantain.review.serving import link
        from plantain.review.serving import serve as run_server

        def announce(address: str, administrator: str, readers: int) -> None:
            print(f"read it yourself: {link(address, token)}", file=sys.stderr)
            print(f"administrator: {administrator}\nCtrl-C stops", file=sys.stderr, flush=True)

        run_server(study, host="127.0.0.1", port=port, agreement=False, url="", announce=announce)
