"""Bootstrap over clusters, stratum by stratum: how often something would be found with other sources.

Within each stratum, n - 1 of its n clusters are drawn with replacement and weighted by n / (n - 1), which keeps the
variance of small strata unbiased (Rao and Wu 1988).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Floats

DRAWS = 2000


def resampled_weights(stratum: npt.ArrayLike, seed: int, draws: int) -> Floats:
    """Return the weight of each cluster in each draw: float64 (draws, clusters), strata drawn separately.

    Args:
        stratum: (clusters,), the label of each cluster's stratum.
    """
    labels = np.asarray(stratum)
    rng = np.random.default_rng(seed)
    weights = np.ones((draws, labels.size))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        n = members.size
        if n > 1:
            drawn = rng.multinomial(n - 1, np.full(n, 1.0 / n), size=draws)
            weights[:, members] = drawn * (n / (n - 1))
    return weights


def drawn_sums(weights: Floats, table: Floats) -> Floats:
    """Return weighted sums of a table's rows in each draw: (draws, clusters) times (clusters, columns).

    A matrix product would add up in another order on another number of cores; here the result is the same everywhere.
    """
    drawn: Floats = np.einsum("dc,kc->dk", weights, np.ascontiguousarray(table.T))
    return drawn
