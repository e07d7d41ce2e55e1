"""An original with all its grey levels, laid over its prepared picture: so that a window means what its file says.

Nothing is believed of how the prepared picture came about: its 256 levels are fitted to the file's own values. Where
that is a straight line, levels are the file's values and a window means what its file says. Where it is a rising or
falling curve (of a film, a sigmoid, a VOI LUT), levels are the prepared grey with fractions. Anything else, as another
picture or one that was equalised by place, has no wide original.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.pixels.arrays import Floats, Pixels
from plantain.pixels.decode import BadImage, grey_levels
from plantain.pixels.dicom.files import read_dicom
from plantain.pixels.dicom.pictures import modality_values
from plantain.records import Geometry

LEVELS = 65_535
STRAIGHT = 0.995
"""Correlation of prepared levels with the file's values, where neither end of the window cuts them off."""

STORED = "stored values"
CURVED = "grey of the picture"
"""Unit where a curve lies between the file's values and the prepared picture: 0 and 255 are its black and white."""

FEWEST = 24
"""Grey levels of the prepared picture that a curve is read from at least; each must stand on `ENOUGH` pixels."""
ENOUGH = 8


@dataclass(frozen=True, slots=True)
class WideOriginal:
    """Grey levels of a file on the pixels of its prepared picture.

    Attributes:
        levels: uint16 (H, W); the value in `unit` is low + step * level.
        unit: "HU", what the file says, "stored values", or `CURVED`.
        black, white: values that the prepared picture shows as 0 and 255; black is the larger where it is inverted.
        windows: (name, width, centre) that the file names; none behind a curve, where its units are not the file's.
        linear: whether they are DICOM's LINEAR, which reach from centre - width/2 to centre + width/2 - 1 (PS3.3
            C.11.2.1.2); else from centre - width/2 to centre + width/2, as LINEAR_EXACT.
    """

    levels: np.ndarray
    low: float
    step: float
    unit: str
    black: float
    white: float
    windows: tuple[tuple[str, float, float], ...] = ()
    linear: bool = False


def read_wide(
    data: bytes, name: str, frame: int, geometry: Geometry, prepared: Pixels
) -> WideOriginal | None:
    """The original of a prepared picture, from its file's bytes; None where it has no more than 256 levels.

    Args:
        data: of a DICOM file, or a grey PNG or TIFF of 16 bits.
        name: how a message names it.
        frame: of a DICOM file, from 0.
        geometry: how the picture was prepared.
        prepared: uint8 (H, W, 3).

    Raises:
        BadImage: bytes that cannot be used, or another picture than the prepared one.
    """
    unit, windows, linear, slope = STORED, tuple[tuple[str, float, float], ...](), False, 1.0
    if data[128:132] == b"DICM":
        values, header = modality_values(read_dicom(data, name), name, frame)
        unit = _unit(header)
        function = str(header.get("VOILUTFunction") or "LINEAR").upper()
        linear = function == "LINEAR"
        slope = abs(float(header.get("RescaleSlope") or 1.0)) or 1.0
        windows = _windows(header, 1.0 if linear else 0.0) if function in ("LINEAR", "LINEAR_EXACT") else ()
    else:
        levels = grey_levels(data, name)
        if levels is None:
            return None
        values = levels.astype(np.float64)
    if len(np.unique(values[:: max(1, values.shape[0] // 512)])) <= 256:
        return None
    if values.shape != (geometry.height, geometry.width):
        raise BadImage(
            f"{name}: {values.shape[1]}x{values.shape[0]} pixels; the prepared one came from another size"
        )
    low, high = float(values.min()), float(values.max())
    laid = _laid(values, geometry, prepared.shape[:2], low)
    ends = _ends(laid, prepared, name)
    if ends is None:
        return _by_curve(laid, prepared, name)
    black, white = ends
    stored = (
        values - low
    ) / slope  # whole numbers where the file has no look-up table: then no level is rounded
    exact = high - low <= LEVELS * slope and np.allclose(stored, np.rint(stored), rtol=0.0, atol=1e-6)
    step = slope if exact else (high - low) / LEVELS
    levels = np.rint((laid - low) / step).clip(0, LEVELS).astype(np.uint16)
    return WideOriginal(levels, low, step, unit, black, white, windows, linear)


def packed(wide: WideOriginal) -> Pixels:
    """Levels as uint8 (H, W, 3): high byte red, low byte green, since browsers read no 16 bits."""
    high, low = (wide.levels >> 8).astype(np.uint8), (wide.levels & 255).astype(np.uint8)
    return np.dstack([high, low, np.zeros_like(low)])


def _laid(values: Floats, geometry: Geometry, shape: tuple[int, ...], padding: float) -> Floats:
    """The values resized and placed as the picture was prepared."""
    inner = (geometry.inner_width, geometry.inner_height)
    shrinks = inner[0] < geometry.width or inner[1] < geometry.height
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    made = (
        values if inner == (geometry.width, geometry.height) else cv2.resize(values, inner, interpolation=how)
    )
    laid = np.full(shape[:2], padding)
    rows = slice(geometry.top, geometry.top + geometry.inner_height)
    laid[rows, geometry.left : geometry.left + geometry.inner_width] = made
    return laid


def _ends(laid: Floats, prepared: Pixels, name: str) -> tuple[float, float] | None:
    """Values at 0 and 255, by a straight line through what the window does not cut off; None where there is no line.

    Raises BadImage where too little is left to tell.
    """
    grey = prepared.astype(np.float64).mean(axis=2)
    inside = (grey > 10) & (grey < 245)
    shown, held = grey[inside], laid[inside]
    if shown.size < 100 or not shown.std() or not held.std():
        raise BadImage(f"{name}: too little of it lies within the window of the prepared picture")
    if abs(float(np.corrcoef(shown, held)[0, 1])) < STRAIGHT:
        return None
    # By the levels' middle values, so that noise of JPEG and resizing does not flatten the line.
    slope = float(np.sign(np.corrcoef(shown, held)[0, 1]) * held.std() / shown.std())
    black = float(held.mean() - slope * shown.mean())
    return black, black + 255 * slope


def _by_curve(laid: Floats, prepared: Pixels, name: str) -> WideOriginal:
    """Levels in the prepared picture's own grey, with what lies between two of its levels. Raises BadImage."""
    grey = np.rint(prepared.astype(np.float64).mean(axis=2)).astype(np.intp)
    inside = (grey > 10) & (grey < 245)
    counted = np.bincount(grey[inside], minlength=256)
    known = np.flatnonzero(counted >= ENOUGH)
    if known.size < FEWEST:
        raise BadImage(f"{name}: the prepared picture has too few grey levels to read its curve from")
    middle = np.array([np.median(laid[inside & (grey == level)]) for level in known])
    falling = middle[-1] < middle[0]
    values, shown = (middle[::-1], known[::-1]) if falling else (middle, known)
    values, first = np.unique(np.maximum.accumulate(values), return_index=True)
    made = _beyond(laid, values, shown[first].astype(np.float64)) if values.size >= FEWEST else laid
    if abs(float(np.corrcoef(grey[inside], made[inside])[0, 1])) < STRAIGHT or values.size < FEWEST:
        raise BadImage(f"{name}: neither a window nor a curve leads from it to the prepared picture")
    low, high = float(made.min()), float(made.max())
    step = (high - low) / LEVELS
    return WideOriginal(
        np.rint((made - low) / step).clip(0, LEVELS).astype(np.uint16), low, step, CURVED, 0.0, 255.0
    )


def _beyond(laid: Floats, values: Floats, shown: Floats) -> Floats:
    """A curve through points, straight on by its last eighth where it ends; `values` rise."""
    made = np.interp(laid, values, shown)
    reach = max(2, values.size // 8)
    for end, inner, outside in ((0, reach, laid < values[0]), (-1, -1 - reach, laid > values[-1])):
        slope = (shown[end] - shown[inner]) / (values[end] - values[inner])
        made = np.where(outside, shown[end] + slope * (laid - values[end]), made)
    return np.asarray(np.clip(made, -255.0, 510.0))


def _unit(header: object) -> str:
    unit = str(getattr(header, "RescaleType", "") or "")
    if unit in ("HU", "") and str(getattr(header, "Modality", "")) == "CT":
        return "HU"
    return unit if unit.isascii() and 0 < len(unit) <= 16 and unit not in ("US", "UNSPECIFIED") else STORED


def _windows(header: object, narrowest: float) -> tuple[tuple[str, float, float], ...]:
    def several(name: str) -> list[object]:
        value = getattr(header, name, None)
        return (
            []
            if value is None
            else list(value)
            if hasattr(value, "__iter__") and not isinstance(value, str)
            else [value]
        )

    names = [str(one) for one in several("WindowCenterWidthExplanation")]
    found = []
    for place, (centre, width) in enumerate(
        zip(several("WindowCenter"), several("WindowWidth"), strict=False)
    ):
        try:
            window = float(str(width)), float(str(centre))
        except ValueError:
            continue
        if np.isfinite(window).all() and narrowest < window[0] < 1e7 and abs(window[1]) < 1e7:
            name = names[place] if place < len(names) and names[place].isprintable() else ""
            found.append((name[:40] or "The file's" + (f" {place + 1}" if place else ""), *window))
    return tuple(found[:6])
