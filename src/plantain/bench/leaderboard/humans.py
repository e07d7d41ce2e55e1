"""Ratings of outputs by people: one file per rater, named after the rater: CSV, or MedEBench's published JSON.

A file has a header and one line per output. Columns, in any order and case: `sample` (id), `model` (label of the arm),
and at least one of `EA`, `CP`, `VQ` (scores, higher is better) or `EA_rank`, `CP_rank`, `VQ_rank` (1 is best, ties
allowed). An empty cell was not rated. The column `note` is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from plantain.bench.leaderboard.published import COLLECTED, RANKED, is_published_file, read_published
from plantain.files.tables import read_table
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.records.messages import nearest, suggest

DIMENSIONS = ("EA", "CP", "VQ")
_RATINGS = {
    column: (name, sign)
    for name in DIMENSIONS
    for column, sign in ((name.lower(), 1.0), (f"{name.lower()}_rank", -1.0))
}
"""Column -> dimension, and the sign that makes higher better."""

Places = Mapping[str, Mapping[str, int]]
"""The index of each sample and of each model, under "sample" and "model"."""


@dataclass(frozen=True, slots=True)
class HumanRatings:
    """All raters' ratings.

    Attributes:
        raters: by the names of their files.
        models: labels of the rated arms, in the order of the run.
        values: by dimension, (raters, samples, models), higher is better, NaN where not rated; a rank r is kept as -r.
        remarks: notes on how the ratings were collected.
    """

    raters: tuple[str, ...]
    models: tuple[str, ...]
    values: Mapping[str, Floats]
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, raters: Sequence[str], models: Sequence[str], tables: Mapping[str, Floats]) -> HumanRatings:
        """Make ratings without the models and dimensions that no rater rated; `values` is empty if none remain.

        Args:
            raters, models: names of the raters and labels of the models.
            tables: by dimension, as `values`.
        """
        rated = np.logical_or.reduce([np.isfinite(table).any(axis=(0, 1)) for table in tables.values()])
        values = {name: table[:, :, rated] for name, table in tables.items() if np.isfinite(table).any()}
        return cls(tuple(raters), tuple(models[int(i)] for i in np.flatnonzero(rated)), values)


def read_ratings(paths: Sequence[Path], samples: Sequence[str], models: Sequence[str]) -> HumanRatings:
    """Read ratings from files, one per rater, which are named after the rater.

    Args:
        paths: the files.
        samples, models: sample ids and arm labels that a line may name.

    Raises:
        InputError: the first problem, with file, line and column.
    """
    raters = [path.stem for path in paths]
    if twice := [rater for rater in raters if raters.count(rater) > 1]:
        raise InputError(
            f"--ratings: two files are named {twice[0]!r}: raters are distinguished by file name"
        )
    places = {
        "sample": {name: i for i, name in enumerate(samples)},
        "model": {name: i for i, name in enumerate(models)},
    }
    tables = {name: np.full((len(paths), len(samples), len(models)), np.nan) for name in DIMENSIONS}
    for number, path in enumerate(paths):
        read = _read_ranks if is_published_file(path) else _read_table
        read(path, places, {name: table[number] for name, table in tables.items()})
    ratings = HumanRatings.of(raters, models, tables)
    if not ratings.values:
        raise InputError(f"{paths[0] if paths else '--ratings'}: no ratings in it")
    return replace(ratings, remarks=(COLLECTED,) if any(map(is_published_file, paths)) else ())


def _read_table(path: Path, places: Places, into: Mapping[str, Floats]) -> None:
    """Enter one rater's table."""
    table = read_table(path)
    names = {column: column.lower() for column in table.columns}
    _check_header(path, list(names.values()))
    seen: dict[tuple[int, int], int] = {}
    for line, cells, _ in table.whole_rows():
        row = {names[column]: cell for column, cell in cells.items()}
        at = []
        for column, known in places.items():
            if row[column] not in known:
                near = nearest(row[column], known)
                hint = f"; did you mean {near!r}?" if near else ""
                raise InputError(f"{path}: line {line}: {column}: this run has no {row[column][:80]!r}{hint}")
            at.append(known[row[column]])
        sample, model = at
        if (first := seen.setdefault((sample, model), line)) != line:
            raise InputError(
                f"{path}: line {line}: sample {row['sample']!r} of {row['model']!r} was rated in line {first} already"
            )
        for column, (name, sign) in _RATINGS.items():
            if text := row.get(column):
                into[name][sample, model] = sign * _number(f"{path}: line {line}: {column}", column, text)


def _check_header(path: Path, header: Sequence[str]) -> None:
    allowed = ("sample", "model", *_RATINGS, "note")
    for name in header:
        if name not in allowed:
            raise InputError(f"{path}: line 1: no column is called {name!r}; {suggest(name, allowed)}")
        if header.count(name) > 1 or f"{name}_rank" in header:
            raise InputError(f"{path}: line 1: {name!r} is rated in two columns; keep one")
    for name in ("sample", "model"):
        if name not in header:
            raise InputError(f"{path}: line 1: the column {name!r} is missing")
    if not any(name in _RATINGS for name in header):
        raise InputError(
            f"{path}: line 1: no ratings; add a column EA, CP or VQ (or EA_rank, CP_rank, VQ_rank)"
        )


def _number(where: str, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {text[:40]!r} is not a number; leave it empty if not rated")
    if column.endswith("_rank") and value < 1:
        raise InputError(f"{where}: a rank of {text[:40]} is below 1, which is the best")
    return value


def _read_ranks(path: Path, places: Places, into: Mapping[str, Floats]) -> None:
    """Enter published ranks; leave out samples and models that the run does not have, unless it has none of them.

    "Gemini 2 Flash", "gemini_2_flash" and the arm "outputs/Gemini_2_Flash" are one model.
    """
    published = read_published(path)
    if not published.ranks:
        raise InputError(f"{path}: has scores of a judge, not ranks by people; give it in place of the run")
    labels = {label.removeprefix("outputs/"): label for label in places["model"]}
    labels |= {label: label for label in places["model"]}
    own = {name: labels.get(found, found) for name, found in published.match(labels).items()}
    for name, found in (("sample", published.rows), ("model", own.values())):
        if not places[name].keys() & set(found):
            raise InputError(
                f"{path}: its {name}s are {', '.join(sorted(found)[:3])} …; the run has none of them, but "
                f"{', '.join(sorted(places[name])[:3])} …"
            )
    for sample, models in published.rows.items():
        for model, row in models.items():
            if sample in places["sample"] and own[model] in places["model"]:
                at = places["sample"][sample], places["model"][own[model]]
                for name, value in row.items():
                    into[RANKED[name]][at] = -value
