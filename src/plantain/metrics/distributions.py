"""Fréchet distances between edited images and their true images as sets, each with its floor.

With fewer images than feature dimensions a Fréchet distance mostly measures the number of images: two draws of 1,182
from one Gaussian in 2,048 dimensions have a distance of 1,621. So every distance is reported with its floor: the
distances after random exchange of the two images of a pair, all pairs of one source together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.means import numbered
from plantain.pixels.arrays import Floats
from plantain.records import Score, unscored

FID_WEIGHTS = frozenset({"inception-v3-2015-12-05"})
LEVEL = 0.05
DRAWS = 39
"""Exchanges drawn for the floor: a distance above all but one of them has p = 2 / 40."""

FEWEST = 6
"""Sources below which no exchange reaches 5 %: five sources have 16 distinct exchanges."""

ENUMERATED = 20
"""Up to this many sources, no exchange is drawn twice."""


@dataclass(frozen=True, slots=True)
class SetDistance:
    """A distance between two sets of images, with the distances expected by chance.

    Attributes:
        score: the distance; lower is better; unscored below two pairs or if features are not finite.
        floor: mean distance after exchanging images at random; None if unscored or with one source only.
        floor_high: the critical value at 5 %; None below `FEWEST` sources.
        p: permutation p value (Phipson and Smyth 2010); None if `floor_high` is.
        pairs: number of independent sources.
    """

    score: Score
    floor: float | None
    floor_high: float | None
    p: float | None
    pairs: int


def frechet_of_features(
    reference: Floats,
    outputs: Floats,
    seed: int = 0,
    *,
    pairs: Sequence[Hashable],
    in_spreads: bool = False,
) -> SetDistance:
    """Compute the Fréchet distance of two sets of features, with the distances expected by chance.

    Args:
        reference, outputs: features (n, d); row i of both belongs to one sample.
        seed: seed of the random exchanges.
        pairs: (n,) the source (patient, image) of each row.
        in_spreads: use `frechet_in_spreads` instead of `frechet`.
    """
    pooled, n = np.concatenate([reference, outputs]), len(reference)
    far = frechet_in_spreads if in_spreads else frechet
    score, sources = far(reference, outputs), len(set(pairs))
    if score.value is None or sources < 2:
        return SetDistance(score, None, None, None, sources)
    orders = _exchanged(pairs, np.random.default_rng(seed))
    found = np.sort([far(pooled[order[:n]], pooled[order[n:]]).value or 0.0 for order in orders])
    floor = float(found.mean())
    if sources < FEWEST:
        return SetDistance(score, floor, None, None, sources)
    rounding = 1e-9 * float(pooled.var(axis=0).sum())
    as_far = int((found >= score.value - rounding).sum())
    critical = float(found[-int(LEVEL * (1 + found.size))])
    return SetDistance(score, floor, critical, (1 + as_far) / (1 + found.size), sources)


def frechet_gaussians(mean: Floats, covariance: Floats, mean2: Floats, covariance2: Floats) -> float:
    """Return the squared Fréchet distance of two Gaussians: |m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2)).

    Args:
        mean, mean2: (d,).
        covariance, covariance2: (d, d), symmetric and positive semidefinite; rank-deficient is fine.

    Example:
        >>> one, two = np.eye(2), 4 * np.eye(2)
        >>> frechet_gaussians(np.zeros(2), one, np.array([3.0, 0.0]), two)  # 9 + 2 * (2 - 1)^2
        11.0
    """
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    cross = float(np.sqrt(np.maximum(np.linalg.eigvalsh(root @ covariance2 @ root), 0.0)).sum())
    shift = mean - mean2
    return max(0.0, float(shift @ shift + np.trace(covariance) + np.trace(covariance2) - 2.0 * cross))


def frechet(a: Floats, b: Floats) -> Score:
    """Return the squared Fréchet distance of the Gaussians fitted to two sets of features (Heusel et al. 2017).

    Args:
        a, b: (n, d); unscored if n is below 2 or a value is not finite. Covariances divide by n - 1.

    With n <= d the trace of the root is the sum of the singular values of the (n, n) product of the centred sets.
    """
    if a.shape[0] < 2:
        return unscored("fewer than two images on a side")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return unscored("features are not finite")
    x, y = ((rows - rows.mean(axis=0)) / np.sqrt(rows.shape[0] - 1) for rows in (a, b))
    if a.shape[0] > a.shape[1]:
        return Score(frechet_gaussians(a.mean(axis=0), x.T @ x, b.mean(axis=0), y.T @ y))
    cross = float(np.linalg.svd(x @ y.T, compute_uv=False).sum())
    shift = a.mean(axis=0) - b.mean(axis=0)
    return Score(max(0.0, float(shift @ shift + (x * x).sum() + (y * y).sum() - 2.0 * cross)))


def frechet_in_spreads(reference: Floats, outputs: Floats) -> Score:
    """Return the squared Fréchet distance of features (n, d) divided by their standard deviation in the reference.

    A feature that is constant in the reference is divided by its standard deviation in both sets together.
    """
    spread, pooled = reference.std(axis=0), np.concatenate([reference, outputs]).std(axis=0)
    size = 1e-9 * np.abs(reference).max(axis=0)  # smaller differences are rounding
    unit = np.where(spread > size, spread, np.where(pooled > size, pooled, 1.0))
    return frechet(reference / unit, outputs / unit)


def _exchanged(pairs: Sequence[Hashable], rng: np.random.Generator) -> Iterator[npt.NDArray[np.intp]]:
    """Yield orders of the pooled rows in which the pairs of some sources changed sides.

    The first source never changes: changing all of them changes no distance.
    """
    source = numbered(pairs)
    n, free = len(source), int(source.max())
    if free < ENUMERATED:
        total = 2**free - 1
        codes = 1 + rng.choice(total, min(DRAWS, total), replace=False)
        bits = codes[:, None] >> np.arange(free) & 1
    else:
        bits = rng.integers(0, 2, (DRAWS, free))
    for sides in np.concatenate([np.zeros((len(bits), 1), np.intp), bits], axis=1):
        first = np.arange(n) + n * sides[source]
        yield np.concatenate([first, (first + n) % (2 * n)])
