"""A reader study's answers as the ratings that a benchmark's metrics are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plantain.bench.leaderboard.humans import DIMENSIONS, HumanRatings
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.review.results.rows import Row, main_rows
from plantain.review.study import ReaderTask, open_study
from plantain.rubrics import MEDEBENCH


def study_ratings(folder: Path, samples: Sequence[str], models: Sequence[str]) -> HumanRatings:
    """Return main answers to `rate` with MedEBench's rubric, by its dimensions, and to `rank`, each for its own.

    Raises:
        InputError: no study, or none of its answers orders this run's models.
    """
    rows = main_rows(open_study(folder), ReaderTask.RATE, ReaderTask.RANK)
    place, arm = {name: i for i, name in enumerate(samples)}, {name: i for i, name in enumerate(models)}
    readers = sorted({row.reader for row in rows})
    tables = {name: np.full((len(readers), len(samples), len(models)), np.nan) for name in DIMENSIONS}
    tasks: set[ReaderTask] = set()
    for row in rows:
        if row.source in place and _enter(tables, row, (readers.index(row.reader), place[row.source]), arm):
            tasks.add(row.task)
    mixed = frozenset(DIMENSIONS if len(tasks) > 1 else ())
    ratings = HumanRatings.of(readers, models, tables, mixed)
    if not ratings.values:
        raise InputError(
            f"--study {folder}: none of its answers orders this run's outputs; make it with --from the run and "
            "--task rank, or --task rate --rubric medebench"
        )
    return ratings


def _enter(tables: dict[str, Floats], row: Row, at: tuple[int, int], arm: dict[str, int]) -> bool:
    """Enter one answer at (reader, sample); return True if it rates an arm."""
    if row.task is ReaderTask.RANK:
        known = [pair for pair in zip(row.slots, row.value["ranks"], strict=True) if pair[0] in arm]
        for model, rank in known:
            tables[row.dimension][*at, arm[model]] = -rank
        return bool(known)
    scores = {c.short: row.value["scores"].get(c.name) for c in MEDEBENCH.criteria if c.short in tables}
    scores = {short: score for short, score in scores.items() if score is not None}
    if row.model not in arm:
        return False
    for short, score in scores.items():
        tables[short][*at, arm[row.model]] = score
    return bool(scores)
