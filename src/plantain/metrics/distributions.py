"""Distances between two sets of images, FID and KID, beside what two draws of one distribution would give.

With fewer images than feature dimensions a Fréchet distance is mostly the cost of having few images: two
draws of 1,182 from the same 2,048-dimensional Gaussian lie 1,621 apart. So no distance comes without its floor:
the same distance between random halves of the pooled features, of the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.encoders import Floats, Image, ImageEncoder, features, label
from plantain.records import Score, unscored

FID_WEIGHTS = frozenset({"inception-v3-2015-12-05"})
SHUFFLES = 20


@dataclass(frozen=True, slots=True)
class SetDistance:
    """A distance of two sets of images with its floor.

    Attributes:
        name: "fid" or "kid", followed by the encoder's name unless it has the published weights.
        score: the distance; lower is better; unscored below two images on a side.
        floor: mean distance of two sets of these sizes from one distribution; None when unscored.
        floor_high: the largest of those seen; a score below it shows no difference.
        reference, outputs: numbers of images; dimensions: of the features.
    """

    name: str
    score: Score
    floor: float | None
    floor_high: float | None
    reference: int
    outputs: int
    dimensions: int

    @property
    def above_floor(self) -> bool | None:
        """Whether the sets differ by more than sets of one distribution do; None when unscored."""
        if self.score.value is None or self.floor_high is None:
            return None
        return self.score.value > self.floor_high


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


def kernel_distance(reference: npt.ArrayLike, outputs: npt.ArrayLike) -> Score:
    """Unbiased squared maximum mean discrepancy with the kernel (x y / d + 1)^3 (Binkowski et al. 2018).

    Args:
        reference, outputs: (n, d) and (m, d), n and m at least 2.

    Returns:
        About 0 for sets of one distribution, whatever n (it may be slightly negative), and above it else.
    """
    a, b = _sets(reference, outputs)
    if min(a.shape[0], b.shape[0]) < 2:
        return unscored("fewer than two images on a side")
    return Score(
        _discrepancy(_kernel(np.concatenate([a, b])), np.arange(a.shape[0] + b.shape[0]), a.shape[0])
    )


def fid(
    reference: Sequence[Image], outputs: Sequence[Image], encoder: ImageEncoder, seed: int = 0
) -> SetDistance:
    """Fréchet distance of two sets of images, with its floor.

    Args:
        reference, outputs: uint8 RGB images.
        encoder: gives the features.
        seed: of the random halves that the floor is measured on.
    """
    a, b = features(encoder, reference), features(encoder, outputs)
    return fid_of_features(a, b, encoder.name, seed)


def kid(
    reference: Sequence[Image], outputs: Sequence[Image], encoder: ImageEncoder, seed: int = 0
) -> SetDistance:
    """Kernel distance of two sets of images, with its floor; arguments as for `fid`."""
    a, b = features(encoder, reference), features(encoder, outputs)
    return kid_of_features(a, b, encoder.name, seed)


def fid_of_features(
    a: Floats, b: Floats, encoder: str, seed: int = 0, shuffles: int = SHUFFLES
) -> SetDistance:
    """`fid` from features (n, d) and (m, d) that were computed before."""
    score = frechet(a, b)
    pooled, n = np.concatenate([a, b]), a.shape[0]

    def floor(order: npt.NDArray[np.intp]) -> float:
        return frechet(pooled[order[:n]], pooled[order[n:]]).value or 0.0

    low, high = _floor(score, floor, pooled.shape[0], seed, shuffles)
    name = label("fid", FID_WEIGHTS, encoder)
    return SetDistance(name, score, low, high, n, b.shape[0], a.shape[1])


def kid_of_features(
    a: Floats, b: Floats, encoder: str, seed: int = 0, shuffles: int = SHUFFLES
) -> SetDistance:
    """`kid` from features (n, d) and (m, d) that were computed before."""
    score = kernel_distance(a, b)
    pooled, n = np.concatenate([a, b]), a.shape[0]
    kernel = _kernel(pooled)

    def floor(order: npt.NDArray[np.intp]) -> float:
        return _discrepancy(kernel, order, n)

    low, high = _floor(score, floor, pooled.shape[0], seed, shuffles)
    name = label("kid", FID_WEIGHTS, encoder)
    return SetDistance(name, score, low, high, n, b.shape[0], a.shape[1])


def _floor(
    score: Score, distance: Callable[[npt.NDArray[np.intp]], float], size: int, seed: int, shuffles: int
) -> tuple[float | None, float | None]:
    """Mean and maximum of the distance over random splits of the pooled features."""
    if score.value is None:
        return None, None
    rng = np.random.default_rng(seed)
    found = [distance(rng.permutation(size)) for _ in range(shuffles)]
    return float(np.mean(found)), float(np.max(found))


def _kernel(rows: Floats) -> Floats:
    result: Floats = (rows @ rows.T / rows.shape[1] + 1.0) ** 3
    return result


def _discrepancy(kernel: Floats, order: npt.NDArray[np.intp], n: int) -> float:
    """The unbiased estimate, for the first `n` of `order` against the rest."""
    first, second = order[:n], order[n:]
    m = second.size
    xx, yy = kernel[np.ix_(first, first)], kernel[np.ix_(second, second)]
    within = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1))
    return float(within - 2.0 * kernel[np.ix_(first, second)].mean())


def _sets(reference: npt.ArrayLike, outputs: npt.ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(reference, np.float64), np.asarray(outputs, np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"features must be (n, d) and (m, d), not {a.shape} and {b.shape}")
    return a, b
