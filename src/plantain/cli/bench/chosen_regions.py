"""Regions that readers of a study chose or drew, written into the benchmark that the study was made from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from plantain.bench.prepare.regions_chosen import choose_region, proposed_regions
from plantain.metrics.statistics.regions import FEWEST, majority, staple
from plantain.pixels.arrays import Mask
from plantain.records import InputError
from plantain.review.answers import region_of
from plantain.review.blinding import fitted_mask
from plantain.review.results.rows import Row, main_rows
from plantain.review.study import ReaderTask, open_study


def take_regions(benchmark: Path, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Makes the readers' regions the samples' own.

    Three readers or more: STAPLE; two: what both took in; one: theirs. A proposal counts as the region that it is.
    Where that leaves nothing, since their regions do not meet, the sample keeps what it had.

    Returns:
        How each was chosen, and what was said of each that was not, by sample.

    Raises:
        InputError: no study, no answers about regions, or a sample that the benchmark does not have.
    """
    study = open_study(folder)
    rows = main_rows(study, ReaderTask.CHOOSE_ROI)
    if not rows:
        raise InputError(f"--study {folder}: nobody has answered a choose-roi question of this study")
    chosen: dict[str, str] = {}
    undecided: dict[str, str] = {}
    for sample in sorted({row.source for row in rows}):
        mine = [row for row in rows if row.source == sample]
        regions = [_region(benchmark, sample, row, study.by_case[row.case].size) for row in mine]
        joint = _joint(regions)
        words = ", ".join(
            f"{n} x {answer}" for answer, n in sorted(Counter(row.answer for row in mine).items())
        )
        how = f"{words}; {'STAPLE' if len(regions) >= FEWEST else 'what all took in'} of {len(regions)}"
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
