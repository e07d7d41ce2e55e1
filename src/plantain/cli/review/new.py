"""`plantain review new`: freeze a study."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import typer

from plantain.bench.generate.editors import BASELINES
from plantain.cli.review.materials import cases_at, register_study
from plantain.cli.terminal.options import (
    AsJson,
    PairColumns,
    PairConstants,
    Seed,
    chosen_words,
    parse_settings,
)
from plantain.cli.terminal.progress import damage_named, progress_bar
from plantain.cli.terminal.tables import print_json
from plantain.records import InputError
from plantain.records.messages import command_line, counted, next_line
from plantain.review.freezing import StudySettings, new_study
from plantain.review.sources import Material, joined, loaded, outlines, with_arms
from plantain.review.study import COMPARES, ORIGINAL, ReaderTask
from plantain.rubrics import rubric_named

VALIDATION, VALIDATED = "med-banana-validation", 100
"""Preset for the validation of a judge by readers (Med-Banana-50K, human validation), and its number of edits."""

TASKS = "accept, rate, pair, rank, real-or-edited, choose-roi, describe-ok"


def new(
    study: Path = typer.Argument(..., metavar="STUDY", help="New folder of the study."),
    source: list[Path] = typer.Option(
        ..., "--from", metavar="SOURCE", help="Run, benchmark or its run, release, table of pairs."
    ),
    task: list[str] | None = typer.Option(
        None, metavar="TASK", help=f"One block each, in this order: {TASKS}; separated by commas."
    ),
    cases: int | None = typer.Option(None, min=1, help="Cases drawn by seed; default: all."),
    seed: Seed = 0,
    rubric: str = typer.Option("med-banana", help="Criteria: a rubric's name or file.toml."),
    scale: str = typer.Option("0-10", metavar="A-B", help="Of ratings, e.g. 0-10 or 1-5."),
    arms: str = typer.Option("", metavar="MODEL,...", help="Models to read; default: no baselines."),
    preset: str = typer.Option("", metavar="NAME", help="med-banana-validation: 100 judged edits."),
    column: PairColumns = None,
    constant: PairConstants = None,
    as_json: AsJson = False,
) -> int:
    """Draw cases, order items, blind the images, and freeze the study under a hash.

    Example: plantain review new studies/pilot --from runs/pilot --task accept --task real-or-edited --cases 60
    """
    if preset not in ("", VALIDATION):
        raise InputError(f"--preset {preset!r}: {VALIDATION}")
    if bool(preset) == bool(task):
        raise InputError(f"--task: name one or more of {', '.join(ReaderTask)}, or give --preset; not both")
    words = chosen_words("--task", ",".join(task or ()).split(","), ReaderTask)
    tasks = (ReaderTask.ACCEPT,) if preset else tuple(map(ReaderTask, words))
    settings = StudySettings(
        name="Reader study",
        seed=seed,
        tasks=tasks,
        rubric=rubric_named(rubric),
        cases=VALIDATED if preset and cases is None else cases,
        scale=_scale(scale),
    )
    roles = parse_settings(column or (), "--column"), parse_settings(constant or ())
    with ExitStack() as kept:
        parts = [cases_at(path, kept, *roles) for path in source]
        compare = any(one in COMPARES for one in tasks)
        found = joined([outlines(part(None)) for part in parts], compare=compare)
        chosen = [arm.strip() for arm in arms.split(",") if arm.strip()] or _without_baselines(found)
        found = with_arms(found, chosen)
        if preset:
            if not (judged := [one for one in found if one.verdicts]):
                line = command_line("judge", "rejudge", source[0], "--judge", "MODEL", "--decisive")
                raise InputError(
                    f"--preset {preset}: no edit of {source[0]} is accepted or rejected yet: {line}"
                )
            found = [replace(one, stratum=f"{one.modality} {one.direction}") for one in judged]

        def load(drawn: Sequence[Material]) -> list[Material]:
            register_study(study, source, drawn)
            return loaded(drawn, parts, compare=compare)

        with progress_bar("images") as move:
            made = new_study(study, found, [path.name for path in source], settings, move, load)
    items = {block.id: len(block.items) for block in made.blocks}
    if as_json:
        document = {
            "study": str(study),
            "hash": made.digest,
            "cases": len(made.cases),
            "items": items,
            "models": made.models,
        }
        print_json(document)
        return damage_named(made.damaged, "its case is left out")
    print(f"{study}: {counted(len(made.cases), 'case')}, frozen as {made.digest[:16]}")
    for block in made.blocks:
        print(f"  {block.title}: {counted(len(block.items), 'item')}")
    if {ReaderTask.RATE, ReaderTask.ACCEPT} & {*tasks}:
        some = ", ".join(one.source[:16] for one in made.cases[:3])
        print(f"sources of cases, for `plantain review import`: {some}, ... ({study / 'study.json'} has all)")
    print(next_line("review", "invite", study, "--readers", 3))
    return damage_named(made.damaged, "its case is left out")


def _scale(text: str) -> tuple[int, int]:
    least, _, most = text.partition("-")
    if not (least.isdigit() and most.isdigit() and int(least) < int(most) <= 100):
        raise InputError(f"--scale {text!r}: least and most as whole numbers, e.g. 0-10 or 1-5")
    return int(least), int(most)


def _without_baselines(found: Sequence[Material]) -> list[str]:
    """Return every model but a benchmark's baselines; all of them if there are only baselines."""
    models = sorted({key for one in found for key in one.images} - {ORIGINAL})
    return [model for model in models if model not in BASELINES] or models
