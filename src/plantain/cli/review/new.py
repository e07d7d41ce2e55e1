"""`plantain review new`: freezes a study."""

from __future__ import annotations

from pathlib import Path

import typer

from plantain.cli.review.materials import materials_at
from plantain.cli.terminal.options import AsJson, Seed
from plantain.cli.terminal.progress import progress_bar
from plantain.cli.terminal.tables import print_json
from plantain.files.opening import read_regular
from plantain.records import InputError
from plantain.records.commands import command_line
from plantain.records.counts import counted
from plantain.records.suggestions import suggest
from plantain.review.freezing import Wanted, new_study
from plantain.review.sources import joined, with_originals
from plantain.review.study import ReaderTask
from plantain.rubrics import rubric_named

TASKS = (
    "accept, rate, pair, rank, real-or-edited, real-or-edited-2afc, which-finding, choose-roi, describe-ok"
)


def new(
    study: Path = typer.Argument(..., metavar="STUDY", help="Folder of the study; it is made."),
    source: list[Path] = typer.Option(
        ..., "--from", metavar="SOURCE", help="Run, benchmark run, release, or CSV."
    ),
    task: list[str] = typer.Option(
        ..., metavar="TASK", help=f"One block each, in this order: {TASKS}; separated by commas."
    ),
    cases: int | None = typer.Option(None, min=1, help="Cases drawn by seed; default: all others."),
    seed: Seed = 0,
    rubric: str = typer.Option("med-banana", help="Criteria: a rubric's name or file.toml."),
    scale: str = typer.Option("0-10", metavar="A-B", help="Of ratings, e.g. 0-10 or 1-5."),
    groups: int = typer.Option(1, min=1, help="Groups of readers with cases of their own (split-plot)."),
    training: int = typer.Option(0, min=0, help="Training items before each block."),
    pass_mark: float = typer.Option(0.0, "--pass", min=0, max=1, help="Share of training to pass."),
    repeats: float = typer.Option(0.0, min=0, max=1, help="Share of items that are read twice."),
    anchors: int = typer.Option(0, min=0, help="Items of known truth in each block."),
    attention: int = typer.Option(0, min=0, help="Attention checks in each block."),
    name: str = typer.Option("", help="What readers see as the study's name; it must tell no model."),
    agreement: Path | None = typer.Option(None, metavar="FILE", help="Text that readers confirm first."),
    fixed_answers: bool = typer.Option(False, "--fixed-answers", help="Answers cannot be changed."),
    choose_only: bool = typer.Option(False, "--choose-only", help="Regions are chosen, not drawn."),
    originals: Path | None = typer.Option(
        None, metavar="FOLDER", help="Original DICOM or PNG files, to window."
    ),
    as_json: AsJson = False,
) -> None:
    """Draw cases, lay out items, blind the pictures, and freeze all of it under a hash.

    Example: plantain review new studies/pilot --from runs/pilot --task accept --task real-or-edited --cases 60
    """
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
    found = joined([materials_at(path) for path in source])
    if originals is not None:
        found = with_originals(found, originals)
    with progress_bar("pictures") as move:
        made = new_study(study, found, [path.name for path in source], wanted, move)
    items = {block.id: len(block.items) for block in made.blocks}
    if as_json:
        document = {
            "study": str(study),
            "hash": made.digest,
            "cases": len(made.cases),
            "items": items,
            "models": made.models,
            "wide": sum(case.wide is not None for case in made.cases),
        }
        print_json(document)
        return
    print(f"{study}: {counted(len(made.cases), 'case')}, frozen as {made.digest[:16]}")
    for block in made.blocks:
        print(f"  {block.title}: {counted(len(block.items), 'item')}")
    invite, serve = (
        command_line("review", "invite", study, "--readers", 3),
        command_line("review", "serve", study),
    )
    print(f"next: {invite}, then {serve}")


def _tasks(words: list[str]) -> tuple[ReaderTask, ...]:
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
    if path is None:
        return ""
    try:
        return read_regular(path, str(path), 2**16).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"--agreement {path}: not UTF-8 text") from error
