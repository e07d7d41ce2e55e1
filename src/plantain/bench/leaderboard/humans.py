"""What people said of a run's outputs: one CSV file per rater.

A file has a header and one line per output. Columns, in any order and case: `sample` (id), `model` (label of the arm),
and at least one of `EA`, `CP`, `VQ` (scores, higher is better) or `EA_rank`, `CP_rank`, `VQ_rank` (1 is best, ties
allowed). An empty cell was not rated. `note` is kept out of the numbers. The file's name names the rater.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plantain.files.csv_form import whole
from plantain.files.opening import read_regular
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.records.suggestions import nearest, suggest

DIMENSIONS = ("EA", "CP", "VQ")
_COLUMNS = {name.lower(): (name, 1.0) for name in DIMENSIONS} | {
    f"{name.lower()}_rank": (name, -1.0) for name in DIMENSIONS
}
_KEYS = ("sample", "model")
_IGNORED = ("note",)
LARGEST = 64 * 2**20
"""Bytes of a file that is still read."""


@dataclass(frozen=True, slots=True)
class HumanRatings:
    """All raters' ratings.

    Attributes:
        raters: by the names of their files.
        models: labels of the arms that anyone rated, in the order of the run.
        values: by dimension, (raters, samples, models), higher is better, NaN where not rated; a rank r is kept as -r.
        mixed: dimensions in which some raters gave scores and others ranks: only the order is common to them.
    """

    raters: tuple[str, ...]
    models: tuple[str, ...]
    values: Mapping[str, Floats]
    mixed: frozenset[str] = frozenset()


def read_ratings(paths: Sequence[Path], samples: Sequence[str], models: Sequence[str]) -> HumanRatings:
    """Reads one file per rater.

    Args:
        paths: the files.
        samples, models: ids and labels that a line may name.

    Raises:
        InputError: the first thing that is wrong, with file, line and column.
    """
    raters = [path.stem for path in paths]
    for rater in raters:
        if raters.count(rater) > 1:
            raise InputError(f"--ratings: two files are named {rater!r}: the name tells raters apart")
    place = {sample: i for i, sample in enumerate(samples)}
    arm = {model: i for i, model in enumerate(models)}
    values = {name: np.full((len(paths), len(samples), len(models)), np.nan) for name in DIMENSIONS}
    columns: set[str] = set()
    for number, path in enumerate(paths):
        columns |= _read(path, place, arm, {name: table[number] for name, table in values.items()})
    rated = np.logical_or.reduce([np.isfinite(table).any(axis=(0, 1)) for table in values.values()])
    kept = np.flatnonzero(rated)
    found = {name: table[:, :, kept] for name, table in values.items() if np.isfinite(table).any()}
    if not found:
        raise InputError(f"{paths[0] if paths else '--ratings'}: no ratings in it")
    mixed = frozenset(name for name in found if {name.lower(), f"{name.lower()}_rank"} <= columns)
    return HumanRatings(tuple(raters), tuple(models[int(i)] for i in kept), found, mixed)


def _read(
    path: Path, place: Mapping[str, int], arm: Mapping[str, int], into: Mapping[str, Floats]
) -> set[str]:
    """Fills in one rater's ratings; returns the columns that have any."""
    columns: set[str] = set()
    seen: dict[tuple[int, int], int] = {}
    for line, row in _lines(path):
        sample = _known(path, line, "sample", row["sample"], place)
        model = _known(path, line, "model", row["model"], arm)
        if (sample, model) in seen:
            raise InputError(
                f"{path}: line {line}: sample {row['sample']!r} of {row['model']!r} was rated in line "
                f"{seen[sample, model]} already"
            )
        seen[sample, model] = line
        for column, text in row.items():
            if column in _COLUMNS and text:
                name, sign = _COLUMNS[column]
                into[name][sample, model] = sign * _number(path, line, column, text)
                columns.add(column)
    return columns


def _lines(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows by line number, keyed by lower-case column, streamed."""
    try:
        text = read_regular(path, str(path), LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        _check_header(path, header)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{path}: line {reader.line_num}: {len(cells)} cells under {len(header)} columns"
                )
            yield (
                reader.line_num,
                {name: whole(cell.strip()) for name, cell in zip(header, cells, strict=True)},
            )
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: {error}") from error


def _check_header(path: Path, header: Sequence[str]) -> None:
    allowed = (*_KEYS, *_COLUMNS, *_IGNORED)
    for name in header:
        if name not in allowed:
            raise InputError(f"{path}: line 1: no column is called {name!r}; {suggest(name, allowed)}")
        if header.count(name) > 1:
            raise InputError(f"{path}: line 1: two columns are called {name!r}")
    for name in _KEYS:
        if name not in header:
            raise InputError(f"{path}: line 1: the column {name!r} is missing")
    for name in DIMENSIONS:
        if name.lower() in header and f"{name.lower()}_rank" in header:
            raise InputError(f"{path}: line 1: both {name} and {name}_rank: give scores or ranks")
    if not any(name in header for name in _COLUMNS):
        raise InputError(
            f"{path}: line 1: no ratings; add a column EA, CP or VQ (or EA_rank, CP_rank, VQ_rank)"
        )


def _known(path: Path, line: int, column: str, text: str, names: Mapping[str, int]) -> int:
    if text not in names:
        near = nearest(text, names)
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(f"{path}: line {line}: {column}: this run has no {text[:80]!r}{hint}")
    return names[text]


def _number(path: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"{path}: line {line}: {column}: {text[:40]!r} is not a number; leave it empty if not rated"
        )
    if column.endswith("_rank") and value < 1:
        raise InputError(
            f"{path}: line {line}: {column}: a rank of {text[:40]} is below 1, which is the best"
        )
    return value
