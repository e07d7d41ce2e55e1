"""Area under the ROC curve with an interval that knows that pictures come in groups, and calibration error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.intervals import Z95, wilson_share
from plantain.metrics.statistics.ranks import average_ranks
from plantain.pixels.arrays import Floats

FEWEST = 5
"""Groups of cases, and of others, below which no interval is given."""


def clustered_area(
    scores: npt.ArrayLike, cases: npt.ArrayLike, groups: npt.ArrayLike
) -> tuple[float | None, float | None, float | None]:
    """The area under the ROC curve and its 95 % interval over groups.

    The variance is that of Obuchowski (Biometrics 1997; 53: 567), DeLong's with groups in place of pictures; the
    interval is made on the logit scale, so that it stays in [0, 1]. Where no case is ranked below another picture, or
    none above, the variance is 0; then it is Wilson's of so many answers as the smaller class has groups.

    Args:
        scores: (N,), higher means rather a case.
        cases: bool (N,).
        groups: (N,), of each picture.

    Returns:
        The area, None without a case or without another picture; its bounds, None below `FEWEST` groups of either.

    Raises:
        ValueError: shapes that do not agree, or a score that is no number.
    """
    s, y, g = np.asarray(scores, np.float64), np.asarray(cases, bool), np.asarray(groups)
    if not s.shape == y.shape == g.shape or s.ndim != 1 or not np.isfinite(s).all():
        raise ValueError(
            f"scores {s.shape}, cases {y.shape} and groups {g.shape}: finite, and one of each per picture"
        )
    n, m = int(y.sum()), int((~y).sum())
    if not n or not m:
        return None, None, None
    above, below = _components(s, y)
    area = float(above.mean())
    names, whose = np.unique(g, return_inverse=True)
    by_case = np.bincount(whose[y], above - area, len(names))
    by_other = np.bincount(whose[~y], below - area, len(names))
    case_groups, other_groups = len(set(whose[y].tolist())), len(set(whose[~y].tolist()))
    if min(case_groups, other_groups) < FEWEST:
        return area, None, None
    variance = float(
        _share(case_groups) * (by_case**2).sum() / n**2
        + _share(other_groups) * (by_other**2).sum() / m**2
        + 2 * _share(len(names)) * (by_case * by_other).sum() / (n * m)
    )
    if variance <= 1e-12 or not 0 < area < 1:
        return area, *wilson_share(area, min(case_groups, other_groups))
    half = Z95 * math.sqrt(variance) / (area * (1 - area))
    middle = math.log(area / (1 - area))
    return area, _expit(middle - half), _expit(middle + half)


def calibration_error(probabilities: npt.ArrayLike, cases: npt.ArrayLike, bins: int = 10) -> float:
    """Expected calibration error: mean distance of share and mean probability, over bins of equal width.

    Guo et al. 2017 (arXiv 1706.04599), for the probability of being a case.

    Args:
        probabilities: (N,) in [0, 1].
        cases: bool (N,).
        bins: how many.

    Returns:
        In [0, 1]; 0 without pictures.

    Example:
        >>> calibration_error([0.9, 0.9, 0.1, 0.1], [True, True, False, False])
        0.1
    """
    p, y = np.asarray(probabilities, np.float64), np.asarray(cases, np.float64)
    if not p.size:
        return 0.0
    which = np.minimum((p * bins).astype(np.intp), bins - 1)
    apart = np.abs(np.bincount(which, p, bins) - np.bincount(which, y, bins))
    return round(float(apart.sum() / p.size), 9)


def _components(scores: Floats, cases: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Of each case the share of others below it; of each other one the share of cases above it; ties count half."""
    n, m = int(cases.sum()), int((~cases).sum())
    ranks = average_ranks(scores)
    above = (ranks[cases] - average_ranks(scores[cases])) / m
    below = 1 - (ranks[~cases] - average_ranks(scores[~cases])) / n
    return above, below


def _share(groups: int) -> float:
    return groups / (groups - 1)


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0


@dataclass(frozen=True, slots=True)
class PairedArea:
    """Two areas over the same pictures.

    Attributes:
        first, second: mean areas over repeats.
        difference: first minus second.
        low, high: its 95 % interval in [-1, 1], over groups and repeats; None where nothing can be said.
    """

    first: float
    second: float
    difference: float
    low: float | None
    high: float | None


def paired_areas(
    first: npt.ArrayLike, second: npt.ArrayLike, cases: npt.ArrayLike, groups: npt.ArrayLike
) -> PairedArea:
    """The difference of two areas under the ROC curve whose scores are of the same pictures, repeat by repeat.

    The variance adds that of the difference over groups (Obuchowski 1997, repeats averaged) and that of its mean over
    repeats, which are taken for independent; degrees of freedom by Satterthwaite.

    Args:
        first, second: (repeats, N), e.g. of several seeds of training.
        cases, groups: as for `clustered_area`.

    Raises:
        ValueError: shapes that do not agree, no case, no other picture, or one repeat.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    y, g = np.asarray(cases, bool), np.asarray(groups)
    n, m = int(y.sum()), int((~y).sum())
    if a.shape != b.shape or a.ndim != 2 or a.shape[1:] != y.shape or y.shape != g.shape or len(a) < 2:
        raise ValueError(
            f"scores {a.shape} and {b.shape}, cases {y.shape}: two repeats or more of the same pictures"
        )
    if not n or not m:
        raise ValueError("an area needs cases and other pictures")
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
