"""Grain: the strength of fine noise, new noise of the same texture, and smooth fills."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import spsolve

from plantain.pixels.arrays import Field, Mask, Plane
from plantain.pixels.blend import dilate

_MAD_TO_SIGMA = 1.4826
_TILE = 32
_FEWEST = 64


def grain_field(gray: Plane, sigma_px: float = 1.5) -> Field:
    """Return the part that a Gaussian blur of `sigma_px` removes: float32 (H, W), grey levels around 0."""
    plane = gray.astype(np.float32)
    residual: Field = plane - cv2.GaussianBlur(plane, (0, 0), sigma_px, borderType=cv2.BORDER_REFLECT_101)
    return residual


def grain_sigma(gray: Plane, mask: Mask | None = None) -> float:
    """Return the noise level in grey levels: the robust standard deviation of `grain_field`.

    The median absolute deviation (times 1.4826, for Gaussian noise) ignores edges as long as they are less than half of
    the region. White noise of level s measures about 0.94 s, since the blur keeps a part.

    Args:
        gray: (H, W), grey levels 0..255.
        mask: where to measure; by default wherever the image is neither black nor saturated.

    Returns:
        0.0 where fewer than 64 pixels are left to measure.
    """
    region = mask if mask is not None else (gray > 2) & (gray < 253)
    values = grain_field(gray)[region]
    return _robust_sigma(values) if values.size >= _FEWEST else 0.0


def synthesise_grain(
    gray: Plane,
    target: Mask,
    rng: np.random.Generator,
    source: Mask | None = None,
    sigma_px: float = 1.5,
) -> Field:
    """Return new grain for a region, with the texture and strength of another region.

    Random noise gets the mean power spectrum of the source's residual, measured on the calmer half of its 32-pixel
    tiles, and the source's robust noise level. Nothing is copied, so nothing repeats (asymptotic discrete spot noise;
    Galerne, Gousseau, Morel 2011).

    Args:
        gray: (H, W), grey levels 0..255.
        target: bool (H, W), where grain is wanted.
        rng: the only source of randomness.
        source: bool (H, W), the region to imitate; by default a 40-pixel ring around the target, without black.
        sigma_px: scale of the residual; larger values include coarser texture, so the source must be free of ribs and
            vessels.

    Returns:
        float32 (H, W), mean about 0, exactly 0 outside the target.
    """
    field = np.zeros(gray.shape, np.float32)
    if not target.any():
        return field
    if source is None:
        source = dilate(target, 40 * max(1.0, sigma_px / 1.5)) & ~dilate(target, 2) & (gray > 2)
    residual = grain_field(gray, sigma_px)
    known = residual[source]
    strength = _robust_sigma(known) if known.size >= _FEWEST else 0.0
    if strength == 0.0:
        return field
    rows, columns = _bounds(target)
    height, width = rows.stop - rows.start, columns.stop - columns.start
    noise = rng.standard_normal((height + _TILE, width + _TILE)).astype(np.float32)
    kernel = _texture_kernel(residual, source)
    shaped = cv2.filter2D(noise, cv2.CV_32F, kernel, borderType=cv2.BORDER_REFLECT_101)
    margin = _TILE // 2
    patch = shaped[margin : margin + height, margin : margin + width] * strength
    field[rows, columns] = np.where(target[rows, columns], patch, 0.0)
    return field


def inpaint_smooth(channel: Plane, mask: Mask) -> Field:
    """Fill a region with a smooth membrane from its border (Laplace's equation).

    The border is smoothed first, by known pixels only, so that its grain does not become streaks. At the image's edge
    the membrane has no slope.

    Args:
        channel: (H, W), grey levels.
        mask: bool (H, W), what to fill; not the whole image.

    Returns:
        float32 (H, W): the channel itself outside the mask, the membrane inside.
    """
    plane = channel.astype(np.float32)
    if not mask.any():
        return plane
    if mask.all():
        raise ValueError("the mask covers the whole image: there is no border to fill from")
    rows, columns = _bounds(dilate(mask, 8))
    inner, hole = plane[rows, columns], mask[rows, columns]
    filled = _membrane(_calm(inner, ~hole, 2.0), hole)
    result = plane.copy()
    result[rows, columns] = np.where(hole, filled, inner)
    return result


def _robust_sigma(values: npt.NDArray[np.float32]) -> float:
    return float(_MAD_TO_SIGMA * np.median(np.abs(values - np.median(values))))


def _bounds(mask: Mask) -> tuple[slice, slice]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _texture_kernel(residual: Field, source: Mask) -> Field:
    """Return a 32x32 kernel of unit energy that turns white noise into the source's texture."""
    window = np.hanning(_TILE + 1)[:_TILE].astype(np.float32)
    window = np.outer(window, window)
    covered = cv2.blur(source.astype(np.float32), (_TILE, _TILE), borderType=cv2.BORDER_CONSTANT)
    centres = covered[_TILE // 2 :: _TILE // 2, _TILE // 2 :: _TILE // 2]
    # A narrow ring holds no whole tile: take the fullest ones there are.
    enough = min(0.9, 0.95 * float(centres.max(initial=0.0)))
    spectra: list[npt.NDArray[np.float64]] = []
    for row, column in np.argwhere(centres >= max(enough, 1e-3)):
        top, left = row * (_TILE // 2), column * (_TILE // 2)
        tile = residual[top : top + _TILE, left : left + _TILE]
        inside = source[top : top + _TILE, left : left + _TILE]
        if tile.shape == (_TILE, _TILE):
            weight = window * inside
            spectra.append(np.abs(np.fft.fft2(tile * weight)) ** 2 / float(np.square(weight).sum() + 1e-9))
    if not spectra:
        single = np.zeros((_TILE, _TILE), np.float32)
        single[_TILE // 2, _TILE // 2] = 1.0
        return single
    energy = np.array([spectrum.sum() for spectrum in spectra])
    quiet = np.array(spectra)[energy <= np.median(energy)]
    mean = quiet.mean(axis=0)
    mean[0, 0] = 0.0
    kernel = np.fft.fftshift(np.fft.ifft2(np.sqrt(mean)).real)
    norm = float(np.sqrt(np.square(kernel).sum()))
    if norm == 0.0:
        kernel[_TILE // 2, _TILE // 2] = norm = 1.0
    return (kernel / norm).astype(np.float32)


def _calm(plane: Field, known: Mask, sigma_px: float) -> Field:
    """Gaussian blur by known pixels only; unknown ones far from any stay 0."""
    weight = known.astype(np.float32)
    total = cv2.GaussianBlur(plane * weight, (0, 0), sigma_px)
    share = cv2.GaussianBlur(weight, (0, 0), sigma_px)
    calm: Field = np.divide(total, share, out=np.zeros_like(total), where=share > 1e-4)
    return np.where(known, calm, 0.0).astype(np.float32)


def _membrane(plane: Field, hole: Mask) -> Field:
    """Solve Laplace's equation in the hole: each of its pixels is the mean of its neighbours within the image."""
    number = np.full(hole.shape, -1)
    number[hole] = np.arange(np.count_nonzero(hole))
    rows: list[npt.NDArray[np.int64]] = []
    columns: list[npt.NDArray[np.int64]] = []
    neighbours, known = np.zeros(number.max() + 1), np.zeros(number.max() + 1)
    forward = (np.s_[1:, :], np.s_[:-1, :]), (np.s_[:, 1:], np.s_[:, :-1])
    for here, there in (*forward, *(pair[::-1] for pair in forward)):
        inside = hole[here]
        own, other = number[here][inside], number[there][inside]
        neighbours[own] += 1
        outside = other < 0
        known[own[outside]] += plane[there][inside][outside]
        rows.append(own[~outside])
        columns.append(other[~outside])
    row, column = np.concatenate(rows), np.concatenate(columns)
    size = neighbours.size
    matrix = diags_array(neighbours) - coo_array((np.ones(row.size), (row, column)), (size, size))
    filled = plane.copy()
    filled[hole] = spsolve(matrix.tocsc(), known)
    return filled
