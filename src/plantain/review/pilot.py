"""What a pilot says of how readers and cases differ: variance components of the difference between two models."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from plantain.files.opening import read_regular
from plantain.metrics.statistics.reader_power import Components, piloted
from plantain.records import InputError

COLUMNS = ("reader", "case", "modality", "score")
LARGEST = 64 * 2**20


def components_of(pilot: Path) -> Components:
    """Variance components from a CSV of `reader,case,modality,score` (the first two modalities, by name).

    Raises:
        InputError: a file that cannot be read so, or that says too little.
    """
    rows = _rows(pilot)
    models = sorted({row["modality"] for row in rows})
    if len(models) < 2:
        raise InputError(f"{pilot}: answers to one model only ({', '.join(models)}); a difference needs two")
    readers = {name: i for i, name in enumerate(sorted({row["reader"] for row in rows}))}
    cases = {name: i for i, name in enumerate(sorted({row["case"] for row in rows}))}
    answers = np.full((2, len(readers), len(cases)), np.nan)
    for number, row in enumerate(rows, 2):
        if row["modality"] in models[:2]:
            try:
                score = float(row["score"])
            except ValueError as error:
                raise InputError(f"{pilot}: line {number}: score {row['score']!r} is not a number") from error
            answers[models.index(row["modality"]), readers[row["reader"]], cases[row["case"]]] = score
    try:
        return piloted(answers[0] - answers[1])
    except ValueError as error:
        raise InputError(f"{pilot}: {error}") from error


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        text = read_regular(path, str(path), LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{path}: no column {missing[0]!r}; a pilot has {', '.join(COLUMNS)}")
    return [row for row in reader if row["score"]]
