"""Reading text with rapidocr: found and read as it stands, and once more turned and mirrored where that made no sense.

The models lie in rapidocr's wheel; nothing is ever fetched. The recogniser knows upright letters only. A line on its
head, or seen from behind as in a film that was scanned the wrong way round, is found all the same, and comes out as a
few letters for a long box, or as letters that it is not sure of. Such boxes are turned and read again.
"""

from __future__ import annotations

import importlib.metadata
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt
from rapidocr import RapidOCR

from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.privacy.text import SURE, Text, TextKind, classify

DARK = 24
"""Grey level up to which padding and air count as black; outside of everything brighter there is no text."""

SURELY = 0.95
"""Confidence above which a reading that fills its box is believed as it stands; real upright letters mostly have it."""

SURE_TURNED = 0.85
"""Least confidence of a turned reading: with four ways to be read, texture finds a sense more often."""

_STROKE_LEVELS = 24.0
_LINE = 1.5
"""Least width of a box by its height that can hold three letters; fewer identify nobody."""


@dataclass(frozen=True, slots=True)
class _Reading:
    words: str
    sure: float

    @property
    def letters(self) -> int:
        return sum(map(str.isalnum, self.words))

    @property
    def kind(self) -> TextKind:
        return classify(self.words) if self.sure >= SURE else TextKind.STRAY


class RapidReader:
    """rapidocr with the models in its wheel, one engine of one thread for each thread that reads."""

    def __init__(self, models: Mapping[str, Path]) -> None:
        self._models = models
        self.name = f"rapidocr {importlib.metadata.version('rapidocr')}, PP-OCRv6 small, also turned"
        self._local = threading.local()

    def read(self, pixels: Pixels) -> tuple[Text, ...]:
        """The text in uint8 (H, W, 3), from top to bottom."""
        content = _content(pixels)
        if content is None:
            return ()
        # OpenCV's order of channels, as the models were trained.
        shown = np.ascontiguousarray(content.cut(pixels)[:, :, ::-1])
        found = self._engine()(shown)
        if found.txts is None or found.boxes is None:
            return ()
        readings = [
            _Reading(words, float(sure)) for words, sure in zip(found.txts, found.scores, strict=True)
        ]
        corners = [np.asarray(box, np.float32) for box in found.boxes]
        self._turn(shown, corners, readings)
        texts = [
            Text(" ".join(one.words.split()), one.kind, _box(places, content), round(one.sure, 3))
            for one, places in zip(readings, corners, strict=True)
        ]
        return tuple(sorted(texts, key=lambda text: (text.box.top, text.box.left, text.text)))

    def _turn(
        self, shown: Pixels, corners: Sequence[npt.NDArray[np.float32]], readings: list[_Reading]
    ) -> None:
        """Reads doubtful boxes again, on their heads and mirrored; what then may identify takes the reading's place."""
        doubtful: list[int] = []
        crops: list[Pixels] = []
        for place, reading in enumerate(readings):
            if reading.kind.identifying:
                continue
            crop = _upright(shown, corners[place])
            if _doubtful(reading, crop):
                doubtful.append(place)
                crops += [
                    np.ascontiguousarray(turned) for turned in (crop[::-1, ::-1], crop[:, ::-1], crop[::-1])
                ]
        if not crops:
            return
        again = self._engine().recognize_txt(crops)
        turned = [_Reading(words, float(sure)) for words, sure in zip(again.txts, again.scores, strict=True)]
        for number, place in enumerate(doubtful):
            best = max(turned[3 * number : 3 * number + 3], key=lambda one: one.sure)
            if best.sure >= SURE_TURNED and best.kind.identifying:
                readings[place] = best

    def _engine(self) -> _Engine:
        if not hasattr(self._local, "engine"):
            threads = "EngineConfig.onnxruntime"
            self._local.engine = RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "Global.use_cls": False,
                    f"{threads}.intra_op_num_threads": 1,
                    f"{threads}.inter_op_num_threads": 1,
                    # What can hardly be read is told too: a marker in doubt must not vanish unnoticed.
                    "Global.text_score": 0.0,
                    "Det.box_thresh": 0.3,
                    "Det.limit_type": "max",
                    "Det.limit_side_len": 1024,
                    # A path given is a path used: without one, rapidocr would look for newer models on the network.
                    **{f"{part}.model_path": str(path) for part, path in self._models.items()},
                }
            )
        engine: _Engine = self._local.engine
        return engine


class _Found(Protocol):
    """What rapidocr returns."""

    txts: tuple[str, ...] | None
    scores: tuple[float, ...]
    boxes: npt.NDArray[np.float32] | None


class _Again(Protocol):
    """What its recogniser returns for a list of lines."""

    txts: tuple[str, ...]
    scores: tuple[float, ...]


class _Engine(Protocol):
    def __call__(self, img_content: Pixels) -> _Found: ...

    def recognize_txt(self, img: list[Pixels]) -> _Again: ...


def _doubtful(reading: _Reading, crop: Pixels) -> bool:
    """Whether a box could hold a line that makes no sense as it stands: long, with strokes, and badly read."""
    height, width = crop.shape[:2]
    if width < _LINE * height:
        return False
    if reading.sure >= SURELY and reading.letters >= 0.8 * width / height:
        return False
    gray = cv2.cvtColor(crop, cv2.COLOR_BGR2GRAY)
    edges = cv2.morphologyEx(gray, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    return float((edges > _STROKE_LEVELS).mean()) > 0.1


def _upright(shown: Pixels, corners: npt.NDArray[np.float32]) -> Pixels:
    """The part of an image within four corners, clockwise from the upper left, as a line from left to right."""
    width = max(1, round(max(_distance(corners[0], corners[1]), _distance(corners[2], corners[3]))))
    height = max(1, round(max(_distance(corners[0], corners[3]), _distance(corners[1], corners[2]))))
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    matrix = cv2.getPerspectiveTransform(corners, target)
    line = cv2.warpPerspective(
        shown, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.ascontiguousarray(np.rot90(line) if height >= _LINE * width else line)


def _distance(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> float:
    return float(np.hypot(*(one - other)))


def _box(corners: npt.NDArray[np.float32], content: Box) -> Box:
    """The upright rectangle around four corners, where it lies in the whole image."""
    left, top = (max(0, int(value)) for value in np.floor(np.min(corners, axis=0)))
    right, bottom = (int(value) for value in np.ceil(np.max(corners, axis=0)))
    return Box(left, top, max(1, right - left), max(1, bottom - top)).moved(content.left, content.top)


def _content(pixels: Pixels) -> Box | None:
    """The part of an image that is not black, with a little around it; None where there is none."""
    bright = pixels.max(axis=2) > DARK
    rows, columns = np.flatnonzero(bright.any(axis=1)), np.flatnonzero(bright.any(axis=0))
    if rows.size == 0:
        return None
    box = Box(int(columns[0]), int(rows[0]), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1)
    height, width = bright.shape
    return box.grown(16, width, height)
