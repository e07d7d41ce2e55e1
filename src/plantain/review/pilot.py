"""What a pilot says of how readers and cases differ: variance components of the difference between two models."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from plantain.files.tables import read_table
from plantain.metrics.statistics.reader_power import Components, piloted
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.agreeing import number_of
from plantain.review.results.rows import Row, rows_of
from plantain.review.study import STUDY, ItemKind, ReaderTask, open_study

COLUMNS = ("reader", "case", "modality", "score")


def components_of(pilot: Path) -> Components:
    """Variance components from a study that was read, or from a CSV of `reader,case,modality,score`.

    Of a study its first accept or rate block counts, cases of one patient as one; with several models the mean over
    all pairs of them. Of a CSV the first two modalities, by name.

    Raises:
        InputError: what cannot be read so, or says too little.
    """
    try:
        if (pilot / STUDY).is_file():
            return _of_study(pilot)
        return piloted(_of_table(pilot))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{pilot}: {error}") from error


def _of_study(folder: Path) -> Components:
    study = open_study(folder)
    block = next((one for one in study.blocks if one.task in (ReaderTask.ACCEPT, ReaderTask.RATE)), None)
    if block is None:
        raise InputError(f"--study {folder}: has no accept or rate block, whose answers are numbers")
    ratings = Ratings.open(study)
    try:
        rows = [row for row in rows_of(study, ratings) if row.block == block.id and row.kind is ItemKind.MAIN]
    finally:
        ratings.close()
    models = sorted({row.model for row in rows if row.model})
    if len(models) < 2:
        raise InputError(
            f"--study {folder}: answers to {', '.join(models) or 'no model'} only; a difference needs two models"
        )
    readers, clusters = sorted({row.reader for row in rows}), sorted({row.cluster for row in rows})
    answers = {model: _means(rows, model, readers, clusters) for model in models}
    found = [piloted(answers[one] - answers[other]) for one, other in itertools.combinations(models, 2)]
    means = np.mean([(parts.reader, parts.case, parts.rest) for parts in found], axis=0)
    return Components(*map(float, means))


def _means(rows: list[Row], model: str, readers: list[str], clusters: list[str]) -> Floats:
    """(readers, clusters): each reader's mean answer to one model; NaN where none was given."""
    given: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.model == model and (number := number_of(row)) is not None:
            given.setdefault((row.reader, row.cluster), []).append(number)
    return np.array(
        [[float(np.mean(given.get((reader, one), [np.nan]))) for one in clusters] for reader in readers]
    )


def _of_table(pilot: Path) -> Floats:
    """(readers, cases): answers to the first modality less those to the second."""
    table = read_table(pilot).require(*COLUMNS)
    lines = {line: row for line, row, _ in table.whole_rows() if row["score"]}
    rows = list(lines.values())
    models = sorted({row["modality"] for row in rows})
    if len(models) < 2:
        raise InputError(f"{pilot}: answers to one model only ({', '.join(models)}); a difference needs two")
    readers = {name: i for i, name in enumerate(sorted({row["reader"] for row in rows}))}
    cases = {name: i for i, name in enumerate(sorted({row["case"] for row in rows}))}
    answers = np.full((2, len(readers), len(cases)), np.nan)
    for number, row in lines.items():
        if row["modality"] in models[:2]:
            try:
                score = float(row["score"])
            except ValueError as error:
                raise InputError(f"{pilot}: line {number}: score {row['score']!r} is not a number") from error
            answers[models.index(row["modality"]), readers[row["reader"]], cases[row["case"]]] = score
    difference: Floats = answers[0] - answers[1]
    return difference
