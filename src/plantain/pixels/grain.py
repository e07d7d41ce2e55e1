"""Grain: how strong the fine noise is, new noise of the same texture, and a smooth base to lay it on."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Field, Mask, Plane
from plantain.pixels.blend import dilate

_MAD_TO_SIGMA = 1.4826
_TILE = 32
_FEWEST = 64


def grain_field(gray: Plane, sigma_px: float = 1.5) -> Field:
    """What a Gaussian blur of `sigma_px` takes away: float32 (H, W), grey levels around 0."""
    plane = gray.astype(np.float32)
    residual: Field = plane - cv2.GaussianBlur(plane, (0, 0), sigma_px, borderType=cv2.BORDER_REFLECT_101)
    return residual


def grain_sigma(gray: Plane, mask: Mask | None = None) -> float:
    """Noise level in grey levels: the robust standard deviation of `grain_field`.

    The median absolute deviation (times 1.4826, right for Gaussian noise) leaves edges aside as long as
    they take less than half of the region. White noise of level s measures about 0.94 s (the part that
    the blur keeps is missing).

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
    """New grain for a region, with the texture and strength that another region has.

    Random noise is given the mean power spectrum of the source's residual, measured on 32-pixel tiles of
    which the busier half (edges, vessels) is left out, and the source's robust noise level. Nothing is
    copied, so nothing repeats (asymptotic discrete spot noise; Galerne, Gousseau, Morel 2011).

    Args:
        gray: (H, W), grey levels 0..255.
        target: bool (H, W), where grain is wanted.
        rng: the only source of randomness.
        source: bool (H, W), where to learn from; by default a 40-pixel ring around the target, without black.
        sigma_px: scale of the residual; larger values bring coarser texture along, and with it what ribs or vessels
            the source holds: give a source without them.

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
    """Fills a region with the smooth membrane that hangs in its border (Laplace's equation).

    The border is smoothed first, by known pixels only, so that its grain does not run into the fill as
    streaks. Where the region touches the image's edge, the membrane ends there without slope.

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
    """A 32x32 kernel of unit energy that turns white noise into the source's texture."""
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


_RELAXATIONS = 20
_CYCLES = 10
_CROSS = np.array([[0, 0.25, 0], [0.25, 0, 0.25], [0, 0.25, 0]], np.float32)


def _membrane(plane: Field, hole: Mask) -> Field:
    """Laplace's equation in the hole, from coarse to fine: each level starts from the one above and is relaxed.

    Every step is a mean of neighbours, so the fill stays between the border's extremes however ragged the hole is.
    """
    height, width = hole.shape
    known = np.where(hole, np.float32(0), np.float32(1))
    start = np.full_like(plane, plane[~hole].mean())
    if min(height, width) > 4 and hole.any():
        size = ((width + 1) // 2, (height + 1) // 2)
        share = cv2.resize(known, size, interpolation=cv2.INTER_AREA)
        half = cv2.resize(plane * known, size, interpolation=cv2.INTER_AREA)
        coarse_hole = share < 0.01
        coarse = np.divide(half, share, out=np.zeros_like(half), where=~coarse_hole)
        start = cv2.resize(_membrane(coarse, coarse_hole), (width, height), interpolation=cv2.INTER_LINEAR)
    filled = np.where(hole, start, plane).astype(np.float32)
    for _ in range(_RELAXATIONS):
        np.copyto(filled, _mean4(filled), where=hole)
    return _refined(filled, hole)


def _refined(filled: Field, hole: Mask) -> Field:
    """Multigrid cycles for as long as they come closer; in a ragged hole they may not, and the start stands."""
    best, least = filled, np.inf
    for _ in range(_CYCLES):
        lack = np.where(hole, _mean4(filled) - filled, 0.0).astype(np.float32)
        correction = _cycle(lack, hole)
        size = float(np.abs(correction).max())
        if size >= least:
            break
        filled = filled + correction
        best, least = filled, size
        if size < 0.02:
            break
    border = filled[cv2.dilate(hole.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(bool) & ~hole]
    return np.where(hole, np.clip(best, border.min(), border.max()), best) if border.size else best


def _cycle(lack: Field, hole: Mask) -> Field:
    """One V-cycle: a correction, 0 outside the hole, that deviates from its neighbours' mean by `lack`."""
    height, width = hole.shape
    correction = np.zeros_like(lack)
    if not hole.any():
        return correction
    if min(height, width) <= 8:
        return _relax(correction, lack, hole, 60)
    correction = _relax(correction, lack, hole, 3)
    left = np.where(hole, lack - correction + _mean4(correction), 0.0).astype(np.float32)
    size = ((width + 1) // 2, (height + 1) // 2)
    inside = cv2.resize(hole.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.5
    # A step twice as long sees four times the deviation.
    coarse = _cycle(4.0 * cv2.resize(left, size, interpolation=cv2.INTER_AREA), inside)
    finer = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)
    np.add(correction, finer, out=correction, where=hole)
    return _relax(correction, lack, hole, 3)


def _relax(correction: Field, lack: Field, hole: Mask, rounds: int) -> Field:
    """Damped Jacobi steps (4/5, the best smoother in two dimensions)."""
    for _ in range(rounds):
        step = _mean4(correction) + lack - correction
        np.add(correction, 0.8 * step, out=correction, where=hole)
    return correction


def _mean4(plane: Field) -> Field:
    mean: Field = cv2.filter2D(plane, cv2.CV_32F, _CROSS, borderType=cv2.BORDER_REPLICATE)
    return mean
