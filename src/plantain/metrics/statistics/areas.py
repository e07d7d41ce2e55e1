"""The difference of two areas under the ROC curve, with an interval over groups of images and over repeats."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.ranks import average_ranks
from plantain.pixels.arrays import Floats

FEWEST = 5
"""Groups of cases, and of other images, below which no interval is given."""


def _components(scores: Floats, cases: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Of each case the share of others below it; of each other one the share of cases above it; ties count half."""
    n, m = int(cases.sum()), int((~cases).sum())
    ranks = average_ranks(scores)
    above = (ranks[cases] - average_ranks(scores[cases])) / m
    below = 1 - (ranks[~cases] - average_ranks(scores[~cases])) / n
    return above, below


def _share(groups: int) -> float:
    return groups / (groups - 1)


@dataclass(frozen=True, slots=True)
class PairedArea:
    """Two areas under the ROC curve over the same images, and their difference.

    Attributes:
        first, second: mean areas over repeats.
        difference: first minus second.
        low, high: its 95 % interval in [-1, 1], over groups and repeats; None if they cannot be computed.
    """

    first: float
    second: float
    difference: float
    low: float | None
    high: float | None


def paired_areas(
    first: npt.ArrayLike, second: npt.ArrayLike, cases: npt.ArrayLike, groups: npt.ArrayLike
) -> PairedArea:
    """Compare two areas under the ROC curve on the same images; return their difference with a 95 % interval.

    The variance is the sum of the difference's variance over groups (Obuchowski 1997, repeats averaged) and over
    repeats, which are assumed to be independent; degrees of freedom by Satterthwaite.

    Args:
        first, second: scores (repeats, N), higher for cases; at least two repeats, e.g. training seeds.
        cases: bool (N,), True for cases, False for controls.
        groups: (N,), the patient or other independent group of each image.

    Raises:
        ValueError: no image is a case, or none is a control.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    y, g = np.asarray(cases, bool), np.asarray(groups)
    n, m = int(y.sum()), int((~y).sum())
    if not n or not m:
        raise ValueError("an area needs cases and controls")
    parts = [[_components(own, y) for own in scores] for scores in (a, b)]
    areas = np.array([[above.mean() for above, _ in each] for each in parts])
    apart = areas[0] - areas[1]
    difference = float(apart.mean())
    above, below = (
        np.mean([one[k] - other[k] for one, other in zip(*parts, strict=True)], axis=0) for k in (0, 1)
    )
    names, whose = np.unique(g, return_inverse=True)
    by_case = np.bincount(whose[y], above - difference, len(names))
    by_other = np.bincount(whose[~y], below - difference, len(names))
    case_groups, other_groups = len(set(whose[y].tolist())), len(set(whose[~y].tolist()))
    measured = float(areas[0].mean()), float(areas[1].mean()), difference
    if min(case_groups, other_groups) < FEWEST:
        return PairedArea(*measured, None, None)
    over_groups = max(
        0.0,
        float(
            _share(case_groups) * (by_case**2).sum() / n**2
            + _share(other_groups) * (by_other**2).sum() / m**2
            + 2 * _share(len(names)) * (by_case * by_other).sum() / (n * m)
        ),
    )
    over_repeats = float(apart.var(ddof=1)) / len(apart)
    # Satterthwaite: the more the repeats say, the fewer degrees of freedom.
    total = over_groups + over_repeats
    freedom = total**2 / (
        over_repeats**2 / (len(apart) - 1) + over_groups**2 / (min(case_groups, other_groups) - 1) + 1e-300
    )
    from scipy.special import stdtrit  # on use: scipy.stats would cost over a second

    half = float(stdtrit(max(freedom, 1.0), 0.975)) * math.sqrt(total)
    return PairedArea(*measured, max(-1.0, difference - half), min(1.0, difference + half))
