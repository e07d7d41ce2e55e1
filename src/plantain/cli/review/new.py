"""`plantain review new`: freezes a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records import InputError
from plantain.records.counts import counted

if TYPE_CHECKING:
    from plantain.review.study import ReaderTask

app = application()

TASKS = (
    "accept, rate, pair, rank, real-or-edited, real-or-edited-2afc, which-finding, choose-roi, describe-ok"
)


@app.command(
    epilog="Example: plantain review new studies/pilot --from runs/pilot --task accept --task real-or-edited --cases 60"
)
def new(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of the study; it is made.")],
    source: Annotated[
        list[Path],
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="Run, benchmark run, release, or CSV of pairs; several join by task.",
        ),
    ],
    task: Annotated[
        list[str],
        typer.Option(
            "--task", metavar="TASK", help=f"One block each, in this order: {TASKS}; separated by commas."
        ),
    ],
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
    attention: Annotated[int, typer.Option(min=0, help="Attention checks in each block.")] = 0,
    name: Annotated[
        str, typer.Option(help="What readers see as the study's name; it must tell no model.")
    ] = "",
    agreement: Annotated[
        Path | None,
        typer.Option(
            "--agreement", metavar="FILE", help="Text that readers confirm by name before any picture."
        ),
    ] = None,
    fixed_answers: Annotated[
        bool, typer.Option("--fixed-answers", help="Answers cannot be changed afterwards.")
    ] = False,
    choose_only: Annotated[
        bool, typer.Option("--choose-only", help="Regions are chosen of proposals, not drawn.")
    ] = False,
    originals: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the originals' own files lie (DICOM, 16-bit PNG), found by hash: readers then window them in "
            "their own units.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> None:
    """Draw cases, lay out items, blind the pictures, and freeze all of it under a hash."""
    from plantain.cli.review.materials import materials_at
    from plantain.cli.terminal.bar import progress_bar
    from plantain.journal.disk.connect import JOURNAL_NAME
    from plantain.release.register import register
    from plantain.review.freezing import Wanted, new_study
    from plantain.review.sources import joined, with_originals
    from plantain.rubrics import rubric_named

    wanted = Wanted(
        name=name or "Reader study",
        seed=seed,
        tasks=_tasks(task),
        rubric=rubric_named(rubric),
        cases=cases,
        groups=groups,
        training=training,
        pass_mark=pass_mark,
        repeats=repeats,
        anchors=anchors,
        attention=attention,
        scale=_scale(scale),
        changes=not fixed_answers,
        agreement=_text(agreement),
        own_region=not choose_only,
    )
    parts = [materials_at(path) for path in source]
    for path, part in zip(source, parts, strict=True):
        if (path / JOURNAL_NAME).is_file():  # a withdrawal from the run then finds the study
            register(path, study, "study", {material.image for material in part})
    found = joined(parts)
    if originals is not None:
        found = with_originals(found, originals)
    with progress_bar("pictures") as move:
        made = new_study(study, found, [path.name for path in source], wanted, move)
    items = {block.id: len(block.items) for block in made.blocks}
    if as_json:
        import orjson

        document = {
            "study": str(study),
            "hash": made.digest,
            "cases": len(made.cases),
            "items": items,
            "models": made.models,
            "wide": sum(case.wide is not None for case in made.cases),
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


def _text(path: Path | None) -> str:
    from plantain.files.opening import read_regular

    if path is None:
        return ""
    try:
        return read_regular(path, str(path), 2**16).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"--agreement {path}: not UTF-8 text") from error
