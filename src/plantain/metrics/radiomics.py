"""Classical radiomic features of images, which need no network, for the Fréchet distance of two sets.

Features follow the definitions of the Image Biomarker Standardisation Initiative (IBSI; Zwanenburg et al. 2020,
reference manual arXiv:1612.07003), in two dimensions, texture matrices merged over the four directions.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from plantain.metrics.metric import check_rgb
from plantain.metrics.pixelwise import field_of_view
from plantain.pixels.arrays import Floats, Image, Mask

Levels = npt.NDArray[np.intp]
"""Discretised grey levels from 1, and 0 outside the field, (H, W)."""

SIDE, BINS = 256, 32

FEATURES = (
    *("mean", "variance", "skewness", "kurtosis", "percentile_10", "percentile_90", "intensity_entropy"),
    *("glcm_joint_entropy", "glcm_energy", "glcm_contrast", "glcm_correlation", "glcm_homogeneity"),
    "glcm_cluster_shade",
    *("glrlm_short_run_emphasis", "glrlm_long_run_emphasis", "glrlm_grey_level_non_uniformity"),
    *("glrlm_run_length_non_uniformity", "glrlm_run_percentage"),
    *("glszm_small_zone_emphasis", "glszm_grey_level_non_uniformity", "glszm_zone_size_non_uniformity"),
    *("glszm_zone_percentage", "glszm_zone_size_entropy"),
    *("field_area", "field_elongation", "field_solidity"),
)
"""Names in the order of the columns; non-uniformities are the normalised ones."""

FEWEST_IMAGES = 2 * len(FEATURES)
"""Images of a set below which the distance is unscored: a covariance needs more images than features."""


class RadiomicsEncoder:
    """An `ImageEncoder` that computes radiomic features; its name states the preprocessing."""

    name = f"{len(FEATURES)} IBSI features of the field of view: grey, longer side {SIDE} px, {BINS} bins of 0 to 255"

    def images(self, images: Sequence[Image]) -> Floats:
        """Return features, float64 (n, 26), of uint8 RGB images (H, W, 3), in the order of `FEATURES`."""
        return np.stack([_features(image) for image in images])


def _features(image: Image) -> Floats:
    pixels = check_rgb(image, "image")
    scale = SIDE / max(pixels.shape[:2])
    size = [max(1, round(scale * side)) for side in pixels.shape[1::-1]]
    pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    field = field_of_view(np.asarray(pixels, np.uint8))
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    levels = np.where(field, 1 + grey.astype(np.intp) * BINS // 256, 0)
    values = grey[field].astype(np.float64)
    parts = (
        first_order(values),
        [_entropy(np.bincount(levels[field]))],
        glcm(levels),
        glrlm(levels),
        glszm(levels),
    )
    return np.concatenate([*parts, shape_of(field)])


def first_order(values: Floats) -> Floats:
    """Return first-order features of grey values (n,): mean, variance, skewness, excess kurtosis, P10, P90; (6,)."""
    centred = values - values.mean()
    variance = float((centred**2).mean())
    skewness, kurtosis = 0.0, 0.0  # IBSI's values of a constant image
    if variance > 0:
        skewness = float((centred**3).mean()) / variance**1.5
        kurtosis = float((centred**4).mean()) / variance**2 - 3.0
    return np.array([values.mean(), variance, skewness, kurtosis, *np.percentile(values, (10, 90))])


def glcm(levels: Levels) -> Floats:
    """Return features (6,) of the symmetric co-occurrence matrix at distance 1: joint entropy, energy, contrast,
    correlation, inverse difference moment, cluster shade; levels (H, W) count from 1, 0 is outside the field."""
    from skimage.feature import graycomatrix  # on use: loading it takes half a second

    angles = np.arange(4) * np.pi / 4
    found = graycomatrix(levels, [1], angles, levels=int(levels.max()) + 1, symmetric=True)
    matrix = found.sum(axis=(2, 3)).astype(np.intp)
    matrix[0], matrix[:, 0] = 0, 0  # outside the field
    p = matrix / max(1, matrix.sum())
    i, j = np.indices(p.shape)
    mean = float((i * p).sum())
    variance = float(((i - mean) ** 2 * p).sum())
    correlation = float(((i - mean) * (j - mean) * p).sum()) / variance if variance > 0 else 1.0
    return np.array(
        [
            _entropy(matrix),
            (p**2).sum(),
            ((i - j) ** 2 * p).sum(),
            correlation,
            (p / (1.0 + (i - j) ** 2)).sum(),
            ((i + j - 2 * mean) ** 3 * p).sum(),
        ]
    )


def glrlm(levels: Levels) -> Floats:
    """Return run-length features (5,): short and long run emphasis, two normalised non-uniformities, percentage."""
    found = [_runs(lines) for lines in (levels, levels.T, _diagonals(levels), _diagonals(levels[:, ::-1]))]
    grey, length = (np.concatenate(part) for part in zip(*found, strict=True))
    return np.array(
        [
            (1.0 / length**2).mean(),
            (length**2).mean(),
            _non_uniformity(grey),
            _non_uniformity(length),
            length.size / length.sum(),
        ]
    )


def glszm(levels: Levels) -> Floats:
    """Return size-zone features (5,): small zone emphasis, two normalised non-uniformities, percentage, size entropy.

    A zone is a set of pixels of one level, connected over sides and corners.
    """
    areas = [
        cv2.connectedComponentsWithStats((levels == level).astype(np.uint8), connectivity=8)[2][
            1:, cv2.CC_STAT_AREA
        ]
        for level in range(1, int(levels.max()) + 1)
    ]
    size = np.concatenate(areas).astype(np.intp)
    grey = np.repeat(np.arange(len(areas)), [len(area) for area in areas])
    _, counts = np.unique(np.stack([grey, size]), axis=1, return_counts=True)
    return np.array(
        [
            (1.0 / size**2).mean(),
            _non_uniformity(grey),
            _non_uniformity(size),
            size.size / size.sum(),
            _entropy(counts),
        ]
    )


def shape_of(field: Mask) -> Floats:
    """Return shape features (3,) of a field: share of the image, minor over major axis, share of its convex hull.

    The last two are 2-D forms of IBSI's elongation and volume density of the convex hull.
    """
    points = np.argwhere(field)
    minor, major = (
        np.sqrt(np.maximum(np.linalg.eigvalsh(np.cov(points.T)), 0.0)) if len(points) > 1 else (0.0, 0.0)
    )
    hull = np.zeros(field.shape, np.uint8)
    cv2.fillConvexPoly(hull, cv2.convexHull(points[:, ::-1].astype(np.int32)), 1)
    return np.array([field.mean(), minor / major if major > 0 else 1.0, field.sum() / hull.sum()])


def _runs(lines: Levels) -> tuple[Levels, Levels]:
    """Return grey level and length of the runs along each row, without those outside the field."""
    flat = np.pad(lines, ((0, 0), (0, 1)), constant_values=-1).ravel()
    starts = np.flatnonzero(np.diff(flat, prepend=-1))
    grey, length = flat[starts], np.diff(starts, append=flat.size)
    return grey[grey > 0], length[grey > 0]


def _diagonals(levels: Levels) -> Levels:
    """Return the diagonals as rows, (H + W, H): those from lower left to upper right."""
    height, width = levels.shape
    sheared = np.zeros((height, height + width), np.intp)
    rows = np.arange(height)[:, None]
    sheared[rows, rows + np.arange(width)] = levels
    return sheared.T


def _non_uniformity(values: npt.NDArray[np.integer]) -> float:
    return float((np.bincount(values).astype(np.float64) ** 2).sum()) / values.size**2


def _entropy(counts: npt.NDArray[np.integer]) -> float:
    """Return the Shannon entropy in bits."""
    p = counts[counts > 0] / max(1, counts.sum())
    return float(-(p * np.log2(p)).sum())
