"""Answers of reader studies for a benchmark: ratings and regions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.regions import choose_region, proposed_regions
from plantain.bench.leaderboard.humans import DIMENSIONS, HumanRatings
from plantain.metrics.statistics.regions import FEWEST, majority, staple
from plantain.pixels.arrays import Floats, Mask
from plantain.records import InputError
from plantain.review.answers import region_of
from plantain.review.blinding import fitted_mask
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


def take_regions(benchmark: Path, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Replace the samples' regions by those of the readers.

    Three or more readers are joined by STAPLE, two by their intersection. A sample whose readers' regions do not
    overlap keeps its region.

    Returns:
        By sample: how the region was chosen; and the readers' answers where none was.

    Raises:
        InputError: no study, no answers about regions, or a sample that the benchmark does not have.
    """
    study = open_study(folder)
    rows = main_rows(study, ReaderTask.CHOOSE_ROI)
    if not rows:
        raise InputError(f"--study {folder}: no reader has answered a choose-roi question")
    chosen: dict[str, str] = {}
    undecided: dict[str, str] = {}
    for sample in sorted({row.source for row in rows}):
        mine = [row for row in rows if row.source == sample]
        regions = [_region(benchmark, sample, row, study.by_case[row.case].size) for row in mine]
        joint = _joint(regions)
        words = ", ".join(
            f"{n} x {answer}" for answer, n in sorted(Counter(row.answer for row in mine).items())
        )
        how = f"{words}; {'STAPLE' if len(regions) >= FEWEST else 'intersection'} of {len(regions)}"
        if not joint.any():
            undecided[sample] = how
            continue
        choose_region(benchmark, sample, joint, f"study {study.digest[:16]}", how)
        chosen[sample] = how
    return chosen, undecided


def _joint(regions: list[Mask]) -> Mask:
    return staple(regions).region if len(regions) >= FEWEST else majority(regions)


def _region(benchmark: Path, sample: str, row: Row, size: tuple[int, int]) -> Mask:
    if row.value.get("mask"):
        return region_of(row.value)

    return fitted_mask(proposed_regions(benchmark, sample)[row.value["proposal"]], size)
