"""rapidocr's two networks without its slow pre- and post-processing: one finds lines of text, one reads them.

Results are bit for bit those of `RapidOCR`, except in strips that it cannot shrink. `RapidOCR` spends a sixth of its
time outside of the networks; here all threads share one pair of sessions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from onnxruntime import InferenceSession, SessionOptions
from rapidocr.ch_ppocr_det import TextDetector
from rapidocr.ch_ppocr_det.utils import DBPostProcess
from rapidocr.ch_ppocr_rec.utils import CTCLabelDecode
from rapidocr.utils.process_img import (
    apply_vertical_padding,
    get_rotate_crop_image,
    map_boxes_to_original,
    resize_image_within_bounds,
)

from plantain.pixels.arrays import Pixels

Corners = npt.NDArray[np.float32]
"""Corners of one line: (4, 2), x and y, clockwise from the upper left of its letters if that is known."""

DETECTED_SIDE = 1024
"""Larger images are shrunk to it before text is looked for."""

MAP_THRESHOLD = BOX_THRESHOLD = 0.3
"""Least probability of a pixel, and mean probability of a box, that count: low, so that faint text is found too."""

_UNCLIP = 1.6
_LEAST_SIDE, _MOST_SIDE = 30, 2000
_LEAST_HEIGHT, _WIDEST = 30, 8
_LINE_HEIGHT, _LEAST_WIDTH, _BATCH = 48, 320, 6
"""All four lines as in rapidocr's configuration."""

_LONGEST = 60
"""Least length of a strip, by its width, of which rapidocr leaves nothing when it shrinks it."""

_LEVELS = np.arange(256, dtype=np.uint8)
_FOUND_AS = ((_LEVELS.astype(np.float32) * (1 / 255.0) - np.array(0.5)) / np.array(0.5)).astype(np.float32)
_READ_AS = np.asarray((_LEVELS.astype(np.float32) / 255 - 0.5) / 0.5, np.float32)
"""Input of the networks for each grey level, computed as by rapidocr: in 64 bits, and in 32."""


class LineFinder:
    """Finds lines of text at any angle. Thread-safe."""

    def __init__(self, model: Path) -> None:
        self._session = _session(model)
        self._boxes = DBPostProcess(
            thresh=MAP_THRESHOLD, box_thresh=BOX_THRESHOLD, unclip_ratio=_UNCLIP, use_dilation=True
        )

    def find(self, shown: Pixels) -> list[tuple[Corners, Pixels]]:
        """Return lines in uint8 (H, W, 3), blue first, from top to bottom: corners, and pixels rotated upright."""
        height, width = shown.shape[:2]
        if height > width or width > _MOST_SIDE:
            shown = _widened(shown)
        inner, down, across = resize_image_within_bounds(shown, _LEAST_SIDE, _MOST_SIDE)
        done = {"preprocess": {"ratio_h": down, "ratio_w": across}}
        inner, done = apply_vertical_padding(inner, done, _WIDEST, _LEAST_HEIGHT)
        high, wide = inner.shape[:2]
        by = min(1.0, DETECTED_SIDE / max(high, wide))
        rows, columns = (round(int(side * by) / 32) * 32 for side in (high, wide))
        if rows <= 0 or columns <= 0:
            return []
        found = _run(self._session, _planes(cv2.resize(inner, (columns, rows)), _FOUND_AS)[None])
        corners, _ = self._boxes(found, (high, wide))
        if len(corners) == 0:
            return []
        corners = TextDetector.sorted_boxes(corners)
        lines = [get_rotate_crop_image(inner, one.copy()) for one in corners]
        corners = map_boxes_to_original(corners.astype(np.float32), done, height, width)
        return [(np.asarray(one, np.float32), line) for one, line in zip(corners, lines, strict=True)]


class LineReader:
    """Reads upright lines. Thread-safe."""

    def __init__(self, model: Path) -> None:
        self._session = _session(model)
        letters = self._session.get_modelmeta().custom_metadata_map["character"].splitlines()
        self._decode = CTCLabelDecode(letters)

    def read(self, lines: Sequence[Pixels]) -> list[tuple[str, float]]:
        """Return the text of lines of uint8 (H, W, 3), blue first, each with its confidence in [0, 1]."""
        shapes = np.array([line.shape[1] / float(line.shape[0]) for line in lines])
        order = np.argsort(shapes)
        texts = [("", 0.0)] * len(lines)
        for start in range(0, len(lines), _BATCH):
            batch = order[start : start + _BATCH]
            width = int(_LINE_HEIGHT * max(_LEAST_WIDTH / _LINE_HEIGHT, *shapes[batch]))
            found = _run(self._session, np.stack([_line(lines[place], width) for place in batch]))
            for place, (words, sure) in zip(batch, self._decode(found)[0], strict=True):
                texts[place] = words, float(sure)
        return texts


def _widened(shown: Pixels) -> Pixels:
    """Pad a strip with black to the right or below, if shrinking would leave none of it."""
    height, width = shown.shape[:2]
    least = -(-max(height, width) // _LONGEST)
    below, right = max(0, least - height), max(0, least - width)
    return cv2.copyMakeBorder(shown, 0, below, 0, right, cv2.BORDER_CONSTANT) if below or right else shown


def _line(line: Pixels, width: int) -> npt.NDArray[np.float32]:
    """Return a line at the height that is read, padded with zeros on the right."""
    own = min(width, math.ceil(_LINE_HEIGHT * (line.shape[1] / float(line.shape[0]))))
    laid = np.zeros((3, _LINE_HEIGHT, width), np.float32)
    laid[:, :, :own] = _planes(cv2.resize(line, (own, _LINE_HEIGHT)), _READ_AS)
    return laid


def _planes(pixels: Pixels, levels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return uint8 (H, W, 3) as a network's input, float32 (3, H, W)."""
    return np.stack([cv2.LUT(plane, levels) for plane in cv2.split(pixels)])


def _session(model: Path) -> InferenceSession:
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Keeps memory between images, but no allocation plan for every size: those add up.
    options.enable_mem_pattern = False
    return InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def _run(session: InferenceSession, planes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    found: list[npt.NDArray[np.float32]] = session.run(None, {session.get_inputs()[0].name: planes})
    return found[0]
