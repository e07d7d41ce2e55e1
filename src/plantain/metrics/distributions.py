"""Distances between two sets of images, FID and KID, beside what the same images show where there is no difference.

With fewer images than feature dimensions a Fréchet distance is mostly the cost of having few images: two
draws of 1,182 from the same 2,048-dimensional Gaussian lie 1,621 apart. So no distance comes without its floor.
Where each output has its own truth, the two of a pair change sides at random, all pairs of one source together:
what they share (patient, view, everything that no edit touched) then moves neither distance nor floor. Sets without
pairs are pooled and split at random, into the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.networks.encoders import ImageEncoder, features, label
from plantain.pixels.arrays import Floats, Image
from plantain.records import Score, unscored

FID_WEIGHTS = frozenset({"inception-v3-2015-12-05"})
LEVEL = 0.05
DRAWS = 39
"""Of the floor. A distance beyond all but one of them has a p of 2 / 40."""

FEWEST = 6
"""Independent pairs below which even the farthest of all swaps is no evidence at 5 %: five have 16."""

ENUMERATED = 20
"""Up to this many independent pairs no swap is drawn twice."""


@dataclass(frozen=True, slots=True)
class SetDistance:
    """A distance of two sets of images with its floor.

    Attributes:
        name: "fid" or "kid", followed by the encoder's name unless it has the published weights.
        score: the distance; lower is better; unscored below two images on a side.
        floor: mean of the distances drawn where there is no difference; None when unscored.
        floor_high: the one of those drawn that a difference at 5 % lies beyond: a score that is not above it shows
            none. None when unscored, and below `FEWEST` independent pairs.
        p: how often a draw lies as far as the score, the score itself counted; None where `floor_high` is.
        reference, outputs: numbers of images; dimensions: of the features.
        pairs: independent pairs that changed sides; 0 for sets without pairs.
    """

    name: str
    score: Score
    floor: float | None
    floor_high: float | None
    p: float | None
    reference: int
    outputs: int
    dimensions: int
    pairs: int = 0

    @property
    def above_floor(self) -> bool | None:
        """Whether the sets differ by more than chance, at 5 %; None where that cannot be said."""
        return None if self.p is None else self.p <= LEVEL


def frechet_gaussians(mean: Floats, covariance: Floats, mean2: Floats, covariance2: Floats) -> float:
    """Squared Fréchet distance of two Gaussians: |m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2)).

    Args:
        mean, mean2: (d,).
        covariance, covariance2: (d, d), symmetric and positive semidefinite; rank-deficient is fine.

    Example:
        >>> one, two = np.eye(2), 4 * np.eye(2)
        >>> frechet_gaussians(np.zeros(2), one, np.array([3.0, 0.0]), two)  # 9 + 2 * (2 - 1)^2
        11.0
    """
    root = _root(covariance)
    inner = np.linalg.eigvalsh(root @ covariance2 @ root)
    cross = float(np.sqrt(np.maximum(inner, 0.0)).sum())
    shift = mean - mean2
    return max(0.0, float(shift @ shift + np.trace(covariance) + np.trace(covariance2) - 2.0 * cross))


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    result: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return result


def frechet(reference: npt.ArrayLike, outputs: npt.ArrayLike) -> Score:
    """Squared Fréchet distance of the Gaussians fitted to two sets of features (Heusel et al. 2017).

    Args:
        reference, outputs: (n, d) and (m, d), n and m at least 2. Sample covariances.

    Returns:
        A distance of 0 or more. With n, m < d the trace of the root comes from the singular values of the
        (n, m) product of the centred sets, which is exact and needs no d x d matrix.
    """
    a, b = _sets(reference, outputs)
    if min(a.shape[0], b.shape[0]) < 2:
        return unscored("fewer than two images on a side")
    x, y = (a - a.mean(axis=0)) / np.sqrt(a.shape[0] - 1), (b - b.mean(axis=0)) / np.sqrt(b.shape[0] - 1)
    if max(a.shape[0], b.shape[0]) > a.shape[1]:
        return Score(frechet_gaussians(a.mean(axis=0), x.T @ x, b.mean(axis=0), y.T @ y))
    cross = float(np.linalg.svd(x @ y.T, compute_uv=False).sum())
    shift = a.mean(axis=0) - b.mean(axis=0)
    return Score(max(0.0, float(shift @ shift + (x * x).sum() + (y * y).sum() - 2.0 * cross)))


def kernel_distance(reference: npt.ArrayLike, outputs: npt.ArrayLike, *, paired: bool = False) -> Score:
    """Unbiased squared maximum mean discrepancy with the kernel (x y / d + 1)^3 (Binkowski et al. 2018).

    Args:
        reference, outputs: (n, d) and (m, d), n and m at least 2.
        paired: each output has the reference at its place; the two are then not compared with each other, as what
            they share would make the sets look closer than one distribution is to itself (the U-statistic of Gretton
            et al. 2012).

    Returns:
        About 0 for sets of one distribution, whatever n (it may be slightly negative), and above it else.
    """
    a, b = _sets(reference, outputs)
    if min(a.shape[0], b.shape[0]) < 2:
        return unscored("fewer than two images on a side")
    order = np.arange(a.shape[0] + b.shape[0])
    return Score(_discrepancy(_kernel(np.concatenate([a, b])), order, a.shape[0], paired=paired))


def fid(
    reference: Sequence[Image],
    outputs: Sequence[Image],
    encoder: ImageEncoder,
    seed: int = 0,
    *,
    pairs: Sequence[Hashable] | None = None,
) -> SetDistance:
    """Fréchet distance of two sets of images, with its floor.

    Args:
        reference, outputs: uint8 RGB images.
        encoder: gives the features.
        seed: of the draws of the floor.
        pairs: of each output, the source (patient, image) that it shares with the reference at its place and perhaps
            with other pairs. None: the sets have nothing in common.

    Raises:
        ValueError: pairs, but not one reference for each output.
    """
    a, b = features(encoder, reference), features(encoder, outputs)
    return fid_of_features(a, b, encoder.name, seed, pairs=pairs)


def kid(
    reference: Sequence[Image],
    outputs: Sequence[Image],
    encoder: ImageEncoder,
    seed: int = 0,
    *,
    pairs: Sequence[Hashable] | None = None,
) -> SetDistance:
    """Kernel distance of two sets of images, with its floor; arguments as for `fid`."""
    a, b = features(encoder, reference), features(encoder, outputs)
    return kid_of_features(a, b, encoder.name, seed, pairs=pairs)


def fid_of_features(
    a: Floats, b: Floats, encoder: str, seed: int = 0, *, pairs: Sequence[Hashable] | None = None
) -> SetDistance:
    """`fid` from features (n, d) and (m, d) that were computed before."""
    pooled, n = np.concatenate([a, b]), a.shape[0]

    def drawn(order: npt.NDArray[np.intp]) -> float:
        return frechet(pooled[order[:n]], pooled[order[n:]]).value or 0.0

    scale = float(pooled.var(axis=0).sum())
    return _with_floor("fid", encoder, frechet(a, b), drawn, scale, (a, b), pairs, seed)


def kid_of_features(
    a: Floats, b: Floats, encoder: str, seed: int = 0, *, pairs: Sequence[Hashable] | None = None
) -> SetDistance:
    """`kid` from features (n, d) and (m, d) that were computed before."""
    kernel, n = _kernel(np.concatenate([a, b])), a.shape[0]

    def drawn(order: npt.NDArray[np.intp]) -> float:
        return _discrepancy(kernel, order, n, paired=pairs is not None)

    scale = float(np.abs(kernel).mean())
    score = kernel_distance(a, b, paired=pairs is not None)
    return _with_floor("kid", encoder, score, drawn, scale, (a, b), pairs, seed)


def _with_floor(
    metric: str,
    encoder: str,
    score: Score,
    distance: Callable[[npt.NDArray[np.intp]], float],
    scale: float,
    sets: tuple[Floats, Floats],
    pairs: Sequence[Hashable] | None,
    seed: int,
) -> SetDistance:
    """The distance with what `distance` gives for orders of the pooled images that only chance tells apart.

    Distances that are equal up to rounding, a billionth of `scale`, count as equally far.
    """
    (n, dimensions), m = sets[0].shape, sets[1].shape[0]
    if pairs is not None and not n == m == len(pairs):
        raise ValueError(f"{n} references, {m} outputs, {len(pairs)} pairs: one of each per output")
    name, independent = label(metric, FID_WEIGHTS, encoder), len(set(pairs or ()))
    if score.value is None:
        return SetDistance(name, score, None, None, None, n, m, dimensions, independent)
    rng = np.random.default_rng(seed)
    orders = (rng.permutation(n + m) for _ in range(DRAWS)) if pairs is None else _swapped(pairs, rng)
    found = np.sort([distance(order) for order in orders])
    if not found.size:
        return SetDistance(name, score, None, None, None, n, m, dimensions, independent)
    floor = float(found.mean())
    if pairs is not None and independent < FEWEST:
        return SetDistance(name, score, floor, None, None, n, m, dimensions, independent)
    as_far = int((found >= score.value - 1e-9 * scale).sum())
    p = (1 + as_far) / (1 + found.size)
    beyond = float(found[-int(LEVEL * (1 + found.size))])
    return SetDistance(name, score, floor, beyond, p, n, m, dimensions, independent)


def _swapped(pairs: Sequence[Hashable], rng: np.random.Generator) -> Iterator[npt.NDArray[np.intp]]:
    """Orders of the pooled images in which some sources' pairs changed sides.

    Under no difference all swaps are as likely as what was found (a permutation test); the first source stays where
    it is, as changing all sides changes no distance.
    """
    places: dict[Hashable, int] = {}
    source = np.array([places.setdefault(name, len(places)) for name in pairs], np.intp)
    n, free = len(source), len(places) - 1
    if free < ENUMERATED:
        total = 2**free - 1
        codes = 1 + rng.choice(total, min(DRAWS, total), replace=False) if total else np.zeros(0, np.intp)
        bits = codes[:, None] >> np.arange(free) & 1
    else:
        bits = rng.integers(0, 2, (DRAWS, free))
    for sides in np.concatenate([np.zeros((len(bits), 1), np.intp), bits], axis=1):
        first = np.arange(n) + n * sides[source]
        yield np.concatenate([first, (first + n) % (2 * n)])


def _kernel(rows: Floats) -> Floats:
    result: Floats = (rows @ rows.T / rows.shape[1] + 1.0) ** 3
    return result


def _discrepancy(kernel: Floats, order: npt.NDArray[np.intp], n: int, *, paired: bool) -> float:
    """The unbiased estimate, for the first `n` of `order` against the rest."""
    first, second = order[:n], order[n:]
    m = second.size
    xx, yy, xy = (kernel[np.ix_(*sides)] for sides in ((first, first), (second, second), (first, second)))
    within = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1))
    across = (xy.sum() - np.trace(xy)) / (n * (n - 1)) if paired else xy.mean()
    return float(within - 2.0 * across)


def _sets(reference: npt.ArrayLike, outputs: npt.ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(reference, np.float64), np.asarray(outputs, np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"features must be (n, d) and (m, d), not {a.shape} and {b.shape}")
    return a, b
