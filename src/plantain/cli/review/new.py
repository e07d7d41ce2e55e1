"""`plantain review new`: freeze a study."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records import InputError
from plantain.records.counts import counted

if TYPE_CHECKING:
    from plantain.review.sources import Material
    from plantain.review.study import ReaderTask

app = application()

VALIDATION, VALIDATED = "med-banana-validation", 100
"""Preset for the validation of a judge by readers (Med-Banana-50K, human validation), and its number of edits."""

TASKS = (
    "accept, rate, pair, rank, real-or-edited, real-or-edited-2afc, which-finding, choose-roi, describe-ok"
)


@app.command(
    epilog="Example: plantain review new studies/pilot --from runs/pilot --task accept --task real-or-edited --cases 60"
)
def new(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="New folder of the study.")],
    source: Annotated[
        list[Path],
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="Run, benchmark or its run, release, or table of pairs as for import; several join by task.",
        ),
    ],
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task", metavar="TASK", help=f"One block each, in this order: {TASKS}; separated by commas."
        ),
    ] = None,
    cases: Annotated[
        int | None,
        typer.Option(
            min=1, help="Cases, drawn by seed in turn from the strata; default: all that training leaves."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of the draw; the same material and seed draw the same cases.")
    ] = 0,
    rubric: Annotated[
        str, typer.Option(help="Whose criteria are accepted or rated: a name, or a file.toml.")
    ] = "med-banana",
    scale: Annotated[str, typer.Option(metavar="A-B", help="Of ratings, e.g. 0-10 or 1-5.")] = "0-10",
    groups: Annotated[
        int, typer.Option(min=1, help="Groups of readers with cases of their own (split-plot).")
    ] = 1,
    training: Annotated[
        int,
        typer.Option(
            min=0, help="Training items with feedback before each block, on as many cases of their own."
        ),
    ] = 0,
    pass_mark: Annotated[
        float, typer.Option("--pass", min=0, max=1, help="Share of the training that must be right.")
    ] = 0.0,
    repeats: Annotated[float, typer.Option(min=0, max=1, help="Share of items that are read twice.")] = 0.0,
    anchors: Annotated[int, typer.Option(min=0, help="Items of known truth in each block.")] = 0,
    name: Annotated[
        str, typer.Option(help="Name of the study that readers see; it must not contain a model's.")
    ] = "",
    arms: Annotated[
        str,
        typer.Option(metavar="MODEL,...", help="Models to read; default: all but a benchmark's baselines."),
    ] = "",
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="med-banana-validation: accept or reject 100 judged edits, in turn from each modality and "
            "direction, as in the paper's validation by radiologists.",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> None:
    """Draw cases, lay out items, blind the images, and freeze all of it under a hash."""
    from plantain.cli.review.materials import materials_at
    from plantain.cli.terminal.bar import progress_bar
    from plantain.review.freezing import StudySettings, new_study
    from plantain.review.sources import joined, with_arms
    from plantain.review.study import COMPARES, ReaderTask
    from plantain.rubrics import rubric_named

    if preset not in ("", VALIDATION):
        raise InputError(f"--preset {preset!r}: {VALIDATION}")
    if bool(preset) == bool(task):
        raise InputError("--task: name at least one task, or give --preset; not both")
    tasks = (ReaderTask.ACCEPT,) if preset else _tasks(task or [])
    settings = StudySettings(
        name=name or "Reader study",
        seed=seed,
        tasks=tasks,
        rubric=rubric_named(rubric),
        cases=VALIDATED if preset and cases is None else cases,
        groups=groups,
        training=training,
        pass_mark=pass_mark,
        repeats=repeats,
        anchors=anchors,
        scale=_scale(scale),
    )
    with ExitStack() as kept:
        parts = [materials_at(path, kept) for path in source]
        found = joined(parts, compare=any(one in COMPARES for one in tasks))
        chosen = [arm.strip() for arm in arms.split(",") if arm.strip()] or _without_baselines(found)
        found = with_arms(found, chosen)
        if preset:
            judged = [one for one in found if one.verdicts]
            found = [replace(one, stratum=f"{one.modality} {one.direction}") for one in judged]
        with progress_bar("images") as move:
            made = new_study(study, found, [path.name for path in source], settings, move)
    items = {block.id: len(block.items) for block in made.blocks}
    if as_json:
        import orjson

        document = {
            "study": str(study),
            "hash": made.digest,
            "cases": len(made.cases),
            "items": items,
            "models": made.models,
        }
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    print(f"{study}: {counted(len(made.cases), 'case')}, frozen as {made.digest[:16]}")
    for block in made.blocks:
        print(f"  {block.title}: {counted(len(block.items), 'item')}")
    print(f"next: plantain review invite {study} --readers 3, then plantain review serve {study}")


def _tasks(words: list[str]) -> tuple[ReaderTask, ...]:
    from plantain.records.suggestions import suggest
    from plantain.review.study import ReaderTask

    found = []
    for word in (part.strip() for text in words for part in text.split(",")):
        if word not in tuple(ReaderTask):
            raise InputError(f"--task {word!r}: {suggest(word, [one.value for one in ReaderTask])}")
        found.append(ReaderTask(word))
    return tuple(dict.fromkeys(found))


def _scale(text: str) -> tuple[int, int]:
    least, _, most = text.partition("-")
    if not (least.isdigit() and most.isdigit() and int(least) < int(most) <= 100):
        raise InputError(f"--scale {text!r}: least and most as whole numbers, e.g. 0-10 or 1-5")
    return int(least), int(most)


def _without_baselines(found: Sequence[Material]) -> list[str]:
    """Return every model but a benchmark's baselines; all of them if there are only baselines."""
    from plantain.bench.generate.baselines import BASELINES
    from plantain.review.study import ORIGINAL

    models = sorted({key for one in found for key in one.images} - {ORIGINAL})
    return [model for model in models if model not in BASELINES] or models
