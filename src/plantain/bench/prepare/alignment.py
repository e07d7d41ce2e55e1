"""Align the image after to the one before with an affine map, and refuse poor alignments.

Quality is the median correlation over tiles, so the change itself may affect up to half of the tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.metrics.pixelwise import ssim
from plantain.pixels.arrays import Field, Floats, Mask, Pixels

WORKING = 512
"""Longest side in pixels at which the map is fitted."""

TILES = 8
"""Tiles along each side over which the quality's median is taken."""

LEAST_QUALITY = 0.5
"""Quality below which a pair is refused: unrelated images reached at most 0.31, true pairs at least 0.67
(docs/design/benchmark-data.md)."""

WORTH = 0.01
"""A map must raise the quality by more than this, so that an exact pair is not resampled."""

LEAST_OVERLAP = 0.5
"""Share of the image before that the one after must cover."""


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The affine map from the image after a change to the image before, and its quality.

    Attributes:
        matrix: float64 (2, 3); maps pixels (x, y) of the image after to those of the image before.
        quality: median over tiles of the correlation of the two images, in [-1, 1].
        similarity: SSIM over the overlap, in [-1, 1].
        overlap: share of the image before that is covered, in [0, 1].
    """

    matrix: Floats
    quality: float
    similarity: float
    overlap: float

    @property
    def refusal(self) -> str:
        """The reason for refusing a pair with this alignment; "" if it is accepted."""
        if self.overlap < LEAST_OVERLAP:
            return f"the images overlap in {self.overlap:.0%} only; at least {LEAST_OVERLAP:.0%} is needed"
        if self.quality < LEAST_QUALITY:
            return f"alignment quality {self.quality:.2f}; at least {LEAST_QUALITY:g} is needed"
        return ""

    @property
    def line(self) -> str:
        """The alignment as one line for a sample's notes."""
        return f"aligned: quality {self.quality:.2f}, SSIM {self.similarity:.2f} on an overlap of {self.overlap:.0%}"


def align(previous: Pixels, changed: Pixels) -> Alignment:
    """Find the best affine map from the image after a change to the image before.

    First estimates come from resizing, from matched SIFT features (RANSAC) and from a coarse search over rotations,
    scales and shifts; each is refined by ECC (Evangelidis and Psarakis 2008) on lightly blurred grey.

    Args:
        previous, changed: uint8 (H, W, 3), of any sizes.
    """
    height, width = previous.shape[:2]
    scale = min(1.0, WORKING / max(height, width))
    size = (max(8, round(width * scale)), max(8, round(height * scale)))
    fixed = _grey(previous, size)
    stretch = np.array(
        [[size[0] / changed.shape[1], 0.0, 0.0], [0.0, size[1] / changed.shape[0], 0.0]], np.float64
    )
    moving = _grey(changed, size)
    identity = np.eye(2, 3)
    quality, small = tile_quality(fixed, moving, np.ones(fixed.shape, bool)), identity
    starts: tuple[Floats | None, ...] = ()
    if quality < 1.0 - WORTH:
        starts = identity, _features(fixed, moving), _searched(fixed, moving)
    for start in starts:
        for matrix in () if start is None else (start, _refined(fixed, moving, start)):
            if matrix is None or not _plausible(matrix):
                continue
            found = tile_quality(fixed, *_warped(moving, matrix, size))
            if found > quality + WORTH:
                quality, small = found, matrix
    enlarge = np.array([[width / size[0]], [height / size[1]]])
    full = enlarge * (small @ np.vstack([stretch, [0.0, 0.0, 1.0]]))
    warped, covered = _warped(moving, small, size)
    return Alignment(full, quality, _similarity(fixed, warped, covered), float(covered.mean()))


def apply_alignment(changed: Pixels, matrix: Floats, size: tuple[int, int]) -> tuple[Pixels, Mask]:
    """Warp the image after a change into the frame of the image before.

    Args:
        changed: uint8 (H, W, 3).
        matrix: float64 (2, 3), the `matrix` of an `Alignment`.
        size: (width, height) of the image before.

    Returns:
        uint8 (height, width, 3), black outside the image after, and bool (height, width), True inside it.
    """
    warped: Pixels = cv2.warpAffine(changed, matrix, size, flags=cv2.INTER_CUBIC)
    covered = cv2.warpAffine(np.full(changed.shape[:2], 255, np.uint8), matrix, size, flags=cv2.INTER_LINEAR)
    return warped, covered == 255


def common_rectangle(covered: Mask) -> tuple[int, int, int, int]:
    """Return (left, top, width, height), in pixels, of the largest rectangle inside a mask; zeros for an empty mask."""
    heights = np.zeros(covered.shape[1] + 1, np.int64)
    best, where = 0, (0, 0, 0, 0)
    for row, line in enumerate(covered):
        heights[:-1] = np.where(line, heights[:-1] + 1, 0)
        stack: list[int] = []
        for column, high in enumerate(heights):
            while stack and heights[stack[-1]] >= high:
                tall = int(heights[stack.pop()])
                left = stack[-1] + 1 if stack else 0
                if tall * (column - left) > best:
                    best, where = tall * (column - left), (left, row - tall + 1, column - left, tall)
            stack.append(column)
    return where


def tile_quality(fixed: Field, moving: Field, covered: Mask) -> float:
    """Measure how well two grey images, float32 (H, W), match: the median correlation of textured tiles, in [-1, 1].

    Only pixels where `covered` is True count. Without texture it is 1 for equal images and 0 for others.
    """
    found = []
    for rows in np.array_split(np.arange(fixed.shape[0]), TILES):
        for columns in np.array_split(np.arange(fixed.shape[1]), TILES):
            place = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            seen = covered[place]
            if seen.mean() < 0.5:
                continue
            first, second = fixed[place][seen], moving[place][seen]
            spread = float(first.std() * second.std())
            if max(first.std(), second.std()) < 2.0:
                continue
            found.append(
                float(((first - first.mean()) * (second - second.mean())).mean()) / max(spread, 1e-6)
            )
    if found:
        return float(np.clip(np.median(found), -1.0, 1.0))
    return 1.0 if covered.any() and float(np.abs(fixed - moving)[covered].mean()) < 1.0 else 0.0


def _grey(pixels: Pixels, size: tuple[int, int]) -> Field:
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(small, (0, 0), 1.0), np.float32)


def _features(fixed: Field, moving: Field) -> Floats | None:
    """Return a similarity from matched SIFT features by RANSAC; None if too few agree."""
    finder = cv2.SIFT.create(2000, contrastThreshold=0.02)
    first, first_words = finder.detectAndCompute(fixed.astype(np.uint8), None)
    second, second_words = finder.detectAndCompute(moving.astype(np.uint8), None)
    if first_words is None or second_words is None or min(len(first), len(second)) < 12:
        return None
    pairs = cv2.BFMatcher(cv2.NORM_L2).knnMatch(second_words, first_words, k=2)
    matches = [pair[0] for pair in pairs if len(pair) == 2 and pair[0].distance < 0.8 * pair[1].distance]
    if len(matches) < 8:
        return None
    source = np.asarray([second[match.queryIdx].pt for match in matches], np.float32)
    target = np.asarray([first[match.trainIdx].pt for match in matches], np.float32)
    cv2.setRNGSeed(0)
    matrix, inliers = cv2.estimateAffinePartial2D(
        source, target, method=cv2.RANSAC, ransacReprojThreshold=4.0
    )
    if matrix is None or int(inliers.sum()) < 8:
        return None
    return np.asarray(matrix, np.float64)


def _searched(fixed: Field, moving: Field) -> Floats:
    """Return the best of a coarse grid of rotations and scales, each shifted by phase correlation."""
    share = 128 / max(fixed.shape)
    size = (max(16, round(fixed.shape[1] * share)), max(16, round(fixed.shape[0] * share)))
    first, second = (cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in (fixed, moving))
    window = cv2.createHanningWindow(size, cv2.CV_32F)
    best, found = -2.0, np.eye(2, 3)
    for turn in (0.0, -8.0, 8.0, -16.0, 16.0):
        for scale in (1.0, 0.8, 0.9, 1.12, 1.25):
            matrix = cv2.getRotationMatrix2D((size[0] / 2, size[1] / 2), turn, scale)
            turned, _ = _warped(second, matrix, size)
            (dx, dy), _ = cv2.phaseCorrelate(turned, first, window)
            matrix[:, 2] += (dx, dy)
            warped, covered = _warped(second, matrix, size)
            quality = tile_quality(first, warped, covered) if covered.mean() >= LEAST_OVERLAP else -2.0
            if quality > best:
                best, found = quality, matrix
    found[:, 2] /= share
    return np.asarray(found, np.float64)


def _refined(fixed: Field, moving: Field, start: Floats) -> Floats | None:
    """Maximise the correlation coefficient, coarse to fine; None if it does not converge."""
    inverse = cv2.invertAffineTransform(start).astype(np.float32)
    stop = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 60, 1e-5)
    for share in (0.25, 0.5, 1.0):
        size = (max(16, round(fixed.shape[1] * share)), max(16, round(fixed.shape[0] * share)))
        small_fixed = cv2.resize(fixed, size, interpolation=cv2.INTER_AREA)
        small_moving = cv2.resize(moving, size, interpolation=cv2.INTER_AREA)
        inverse[:, 2] *= share
        try:
            _, inverse = cv2.findTransformECC(
                small_fixed, small_moving, inverse, cv2.MOTION_AFFINE, stop, None, 5
            )
        except cv2.error:
            return None
        inverse[:, 2] /= share
    if not np.isfinite(inverse).all() or abs(float(np.linalg.det(inverse[:, :2]))) < 1e-3:
        return None
    return np.asarray(cv2.invertAffineTransform(inverse), np.float64)


def _plausible(matrix: Floats) -> bool:
    """Return False for mirrored maps, scales beyond 2.5 in any direction, and shears beyond 2 to 1."""
    linear = matrix[:, :2]
    if np.linalg.det(linear) <= 0:
        return False
    large, small = np.linalg.svd(linear, compute_uv=False)
    return bool(large <= 2.5 and small >= 0.4 and large / small <= 2.0)


def _warped(moving: Field, matrix: Floats, size: tuple[int, int]) -> tuple[Field, Mask]:
    warped = cv2.warpAffine(moving, matrix, size, flags=cv2.INTER_LINEAR)
    covered = cv2.warpAffine(np.full(moving.shape, 255, np.uint8), matrix, size, flags=cv2.INTER_LINEAR)
    return np.asarray(warped, np.float32), covered == 255


def _similarity(fixed: Field, warped: Field, covered: Mask) -> float:
    left, top, width, height = common_rectangle(covered)
    if min(width, height) < 7:
        return 0.0
    place = np.s_[top : top + height, left : left + width]
    first, second = (np.clip(np.rint(one[place]), 0, 255).astype(np.uint8) for one in (fixed, warped))
    return ssim(np.ascontiguousarray(first), np.ascontiguousarray(second)).value or 0.0
