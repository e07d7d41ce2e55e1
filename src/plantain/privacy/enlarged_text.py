"""Text in pictures that were enlarged a lot: read at twice their own size, where reading costs a quarter.

A slice of 224 pixels becomes 1024, which shows a reader hardly more than 512 does. Of 116 lines, 5 to 14 pixels high,
mostly faint, that were drawn on such slices 61 were read at 1024 and 64 at 512: four others were lost, seven won, in
0.25 of the time (`benchmarks/burned_in_text.py --slices FOLDER`).
"""

from __future__ import annotations

import cv2
import numpy as np

from plantain.pixels.arrays import Pixels
from plantain.privacy.text import Text, TextReader, enlarged
from plantain.records import Geometry

LARGELY = 2.5
"""Pictures enlarged by more are read smaller."""

READ_AT = 2.25
"""Times their own size at which they are read."""

LEAST_SIDE = 512
"""Side in pixels below which nothing is read, however small the original."""


def read_prepared(pixels: Pixels, geometry: Geometry, reader: TextReader) -> tuple[Text, ...]:
    """The text in a prepared image, told in its pixels, from top to bottom.

    Args:
        pixels: uint8 (H, W, 3), prepared.
        geometry: how the original lies in it.
        reader: of text.
    """
    height, width = pixels.shape[:2]
    larger = max(geometry.inner_width / geometry.width, geometry.inner_height / geometry.height)
    side = max(height, width)
    wanted = max(LEAST_SIDE, round(side * READ_AT / larger))
    if larger <= LARGELY or wanted >= side:
        return reader.read(pixels)
    by = wanted / side
    size = (round(width * by), round(height * by))
    smaller = cv2.resize(np.ascontiguousarray(pixels), size, interpolation=cv2.INTER_AREA)
    return tuple(enlarged(text, 1 / by) for text in reader.read(smaller))
