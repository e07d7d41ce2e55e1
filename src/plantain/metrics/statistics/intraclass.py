"""ICC(2,1): how far readers give the same scores, readers and items both samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.agreement import Agreement


def icc(ratings: npt.ArrayLike) -> Agreement:
    """The intraclass correlation for absolute agreement of single ratings (Shrout and Fleiss 1979, case 2).

    Args:
        ratings: (raters, items); items that a rater left out are left out.

    Returns:
        The coefficient with McGraw and Wong's interval (1996); `observed` and `prevalence` mean nothing here.

    Example:
        Shrout and Fleiss' own table of four judges and six targets, for which they print 0.29.

        >>> table = [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]]
        >>> round(icc(table).value, 2)
        0.29
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings must be (raters, items), not {table.shape}")
    table = table[:, np.isfinite(table).all(axis=0)]
    k, n = table.shape
    if k < 2 or n < 2:
        return Agreement(None, None, None, None, None, n, n, "fewer than two raters or items in common")
    grand, by_item, by_rater = table.mean(), table.mean(axis=0), table.mean(axis=1)
    items = k * float(np.sum((by_item - grand) ** 2)) / (n - 1)
    raters = n * float(np.sum((by_rater - grand) ** 2)) / (k - 1)
    left = table - by_item[None, :] - by_rater[:, None] + grand
    error = float(np.sum(left**2)) / ((n - 1) * (k - 1))
    below = items + (k - 1) * error + k * (raters - error) / n
    if below <= 0:
        return Agreement(None, None, None, None, None, n, n, "all ratings are the same")
    value = (items - error) / below
    low, high = _interval(value, items, raters, error, n, k)
    return Agreement(value, low, high, None, None, n, n)


def _interval(
    value: float, items: float, raters: float, error: float, n: int, k: int
) -> tuple[float | None, float | None]:
    from scipy.special import fdtri

    if error <= 0 or value >= 1:
        return None, None
    a = k * value / (n * (1 - value))
    b = 1 + k * value * (n - 1) / (n * (1 - value))
    freedom = (a * raters + b * error) ** 2 / (
        (a * raters) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1))
    )
    above, below = float(fdtri(n - 1, freedom, 0.975)), float(fdtri(freedom, n - 1, 0.975))
    spread = k * raters + (k * n - k - n) * error
    low = n * (items - above * error) / (above * spread + n * items)
    high = n * (below * items - error) / (spread + n * below * items)
    return max(-1.0, low), min(1.0, high)
