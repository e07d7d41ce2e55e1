"""A reader study's answers as the ratings that a benchmark's metrics are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plantain.bench.leaderboard.humans import DIMENSIONS, HumanRatings
from plantain.metrics.statistics.bradley_terry import Comparison
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.review.results.analysis import comparisons_of
from plantain.review.results.rows import Row, rows_of
from plantain.review.study import ItemKind, ReaderTask
from plantain.rubrics import MEDEBENCH


def study_ratings(folder: Path, samples: Sequence[str], models: Sequence[str]) -> HumanRatings:
    """Main answers to `rate` with MedEBench's rubric, by its dimensions, and to `rank`, for all of them.

    Raises:
        InputError: no study, or none of its answers is about this run in a way that orders its models.
    """
    from plantain.review.ratings import Ratings as Stored
    from plantain.review.study import open_study

    study = open_study(folder)
    stored = Stored.open(study)
    try:
        rows = [row for row in rows_of(study, stored) if row.kind is ItemKind.MAIN and not row.cannot]
    finally:
        stored.close()
    rows = [row for row in rows if row.task in (ReaderTask.RATE, ReaderTask.RANK)]
    place, arm = {name: i for i, name in enumerate(samples)}, {name: i for i, name in enumerate(models)}
    readers = sorted({row.reader for row in rows})
    values = {name: np.full((len(readers), len(samples), len(models)), np.nan) for name in DIMENSIONS}
    tasks: set[ReaderTask] = set()
    for row in rows:
        if row.source in place and _fill(values, row, readers.index(row.reader), place[row.source], arm):
            tasks.add(row.task)
    rated = np.logical_or.reduce([np.isfinite(table).any(axis=(0, 1)) for table in values.values()])
    found = {name: table[:, :, rated] for name, table in values.items() if np.isfinite(table).any()}
    if not found:
        raise InputError(
            f"--study {folder}: none of its answers orders this run's outputs; make it with --from the run and "
            "--task rank, or --task rate --rubric medebench"
        )
    kept = tuple(models[int(i)] for i in np.flatnonzero(rated))
    return HumanRatings(tuple(readers), kept, found, frozenset(found) if len(tasks) > 1 else frozenset())


def study_pairs(folder: Path) -> list[Comparison]:
    """A study's main answers to `pair` and `rank` as comparisons of two arms; readers stand by their codes.

    Raises:
        InputError: no study, or none of its answers compares two models.
    """
    from plantain.review.ratings import Ratings as Stored
    from plantain.review.study import open_study

    study = open_study(folder)
    stored = Stored.open(study)
    try:
        rows = [row for row in rows_of(study, stored) if row.kind is ItemKind.MAIN]
    finally:
        stored.close()
    compared = comparisons_of([row for row in rows if row.task in (ReaderTask.PAIR, ReaderTask.RANK)])
    if not compared:
        raise InputError(
            f"--study {folder}: none of its answers compares two models; ask with --task pair or rank"
        )
    return compared


def _fill(values: dict[str, Floats], row: Row, reader: int, sample: int, arm: dict[str, int]) -> bool:
    """Enters one answer; whether there was anything to enter."""
    if row.task is ReaderTask.RANK:
        known = [
            (arm[model], -rank)
            for model, rank in zip(row.slots, row.value["ranks"], strict=True)
            if model in arm
        ]
        for table in values.values():
            for model, value in known:
                table[reader, sample, model] = value
        return bool(known)
    if row.model not in arm:
        return False
    entered = False
    for criterion in MEDEBENCH.criteria:
        if criterion.name in row.value["scores"] and criterion.short in values:
            values[criterion.short][reader, sample, arm[row.model]] = row.value["scores"][criterion.name]
            entered = True
    return entered
