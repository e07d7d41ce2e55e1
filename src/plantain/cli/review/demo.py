"""`plantain review demo`: a study on the demo's run, with two simulated readers."""

from __future__ import annotations

import random
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from plantain.cli.review.materials import register_study
from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.progress import BuildProgress, run_to_end
from plantain.cli.terminal.tables import print_json
from plantain.pipeline.demo import demo_recipe, fill_demo_catalogue
from plantain.pipeline.run import run_build
from plantain.records.messages import command_line, next_line
from plantain.review.freezing import StudySettings, new_study
from plantain.review.ratings import Ratings
from plantain.review.run_materials import materials_of_run
from plantain.review.study import ORIGINAL, Block, ReaderTask, Study, open_study
from plantain.review.web.desk import reader_order, slot_order
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
        with BuildProgress(quiet=as_json) as progress:
            run_to_end(run_build(demo_recipe(folder), run, limit=limit, observer=progress))
        found = list(materials_of_run(run))
        settings = StudySettings(
            name="Demo: are these edits good?",
            seed=7,
            tasks=(ReaderTask.ACCEPT, ReaderTask.REAL_OR_EDITED, ReaderTask.CHOOSE_ROI),
            rubric=MED_BANANA,
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


def simulate(study: Study, ratings: Ratings, readers: int = 2) -> int:
    """Let simulated readers answer every item and close their blocks; return the number of answers."""
    given = 0
    for number in range(readers):
        reader, _ = ratings.invite(code=f"simulated-{number + 1}")
        for block in study.blocks:
            for position, item in enumerate(reader_order(study, block, reader.number)):
                slots = slot_order(study, item, reader.number)
                draw = random.Random(f"{study.seed} {number} {item.id}")
                taste = random.Random(f"{study.seed} {item.case} {item.shown}").random()
                quality = 0.7 * taste + 0.3 * draw.random() - 0.06 * number
                value = _answer(block, slots, quality, draw)
                focus = round(1000 * draw.lognormvariate(2.2, 0.4))
                key = f"simulated-{item.id}"
                ratings.save(reader.code, item.id, key, block.id, slots, position, value, focus)
                given += 1
            ratings.close_block(reader.code, block.id)
    return given


def _answer(block: Block, slots: list[str], quality: float, draw: random.Random) -> dict[str, Any]:
    """Answer a question of one of the demo's tasks; an image of better `quality` is accepted more often."""
    if block.task is ReaderTask.ACCEPT:
        good = quality > 0.3
        criteria = {name: good or draw.random() < 0.5 for name, _ in block.criteria}
        if not good:
            criteria[block.criteria[0][0]] = False
        codes = [] if good or not block.codes else [draw.choice(block.codes)]
        return {"criteria": criteria, "codes": codes}
    if block.task is ReaderTask.REAL_OR_EDITED:
        real = slots[0] == ORIGINAL
        return {"real": real if draw.random() < 0.7 else not real}
    return {"cannot": "a simulated reader draws nothing"}
