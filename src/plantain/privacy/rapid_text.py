"""The text reader of the extra `ocr`, rapidocr; lines of a doubtful reading are rotated, mirrored and read again.

The models are part of its wheel; nothing is downloaded. The recogniser knows upright letters only. A line that
is upside down, or mirrored as in a film scanned from behind, is found all the same. Its reading has few letters for a
long box, or a low confidence. Such boxes are rotated and read again.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from plantain.files.installed import install_line
from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.privacy.text import SURE, Text, TextKind, TextReader, classify

if TYPE_CHECKING:
    from rapidocr import RapidOCR

Corners = npt.NDArray[np.float32]
"""Corners of one line: (4, 2), x and y, clockwise from the upper left of its letters if that is known."""

_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
"""Models that find and read text, inside rapidocr's wheel."""

_PARAMETERS = {
    "Global.log_level": "critical",
    "Global.use_cls": False,
    "Global.text_score": 0.0,
    # Low, so that faint text is found too: the least mean probability of a box.
    "Det.box_thresh": 0.3,
    # Larger images are shrunk to this side before text is looked for.
    "Det.limit_type": "max",
    "Det.limit_side_len": 1024,
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}

_MOST_SIDE, _LONGEST = 2000, 60
"""Sides that rapidocr shrinks, and the least length of a strip, by its width, of which it then leaves nothing."""

_KEPT = 16
"""Images whose text is kept: many edits of one original are compared with it, one after the other."""

DARK = 24
"""Grey level up to which padding and air count as black; text is only read within the bounds of brighter pixels."""

SURELY = 0.95
"""Confidence above which a reading that fills its box is accepted; real upright letters mostly have it."""

SURE_TURNED = 0.85
"""Least confidence of a turned reading: with four ways to be read, texture finds a sense more often."""

_STROKE_LEVELS = 24.0
_LINE = 1.5
"""Least width of a box by its height that can hold three letters; fewer identify no patient."""


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


def why_no_reader() -> str:
    """Return why text cannot be read here; "" if it can."""
    for package in ("rapidocr", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed ({install_line('ocr')})"
    missing = [path.name for path in _models().values() if not path.is_file()]
    return f"rapidocr came without {missing[0]}, and nothing is downloaded" if missing else ""


def open_reader() -> TextReader | None:
    """Return the reader of the extra `ocr`; None if it is not installed, or its wheel has no models."""
    if why_no_reader():
        return None
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else onnxruntime reports the machine to its maker
    from rapidocr import RapidOCR  # half a second

    return RapidReader(RapidOCR)


def _models() -> dict[str, Path]:
    spec = importlib.util.find_spec("rapidocr")
    folder = Path(spec.origin).parent / "models" if spec is not None and spec.origin else Path()
    return {part: folder / name for part, name in _MODELS.items()}


class RapidReader:
    """The text reader rapidocr with the models in its wheel, loaded with the first image; thread-safe."""

    def __init__(self, engine: type[RapidOCR]) -> None:
        self.name = f"rapidocr {importlib.metadata.version('rapidocr')}, PP-OCRv6 small, also turned"
        self._engine = engine
        self._read = lru_cache(_KEPT)(self._read_bytes)

    def read(self, pixels: Pixels) -> tuple[Text, ...]:
        """Return the text in uint8 (H, W, 3), from top to bottom. An image read shortly before is not read again."""
        return self._read(pixels.tobytes(), pixels.shape)

    def _read_bytes(self, data: bytes, shape: tuple[int, ...]) -> tuple[Text, ...]:
        pixels = np.frombuffer(data, np.uint8).reshape(shape)
        content = _content(pixels)
        if content is None:
            return ()
        # OpenCV's order of channels, as the models were trained.
        shown = _widened(np.ascontiguousarray(content.cut(pixels)[:, :, ::-1]))
        found = self._loaded(shown)
        if found.boxes is None:
            return ()
        corners = [np.asarray(one, np.float32) for one in found.boxes]
        readings = [
            _Reading(words, float(sure)) for words, sure in zip(found.txts, found.scores, strict=True)
        ]
        _turn(shown, corners, readings, self._loaded)
        texts = [
            Text(" ".join(one.words.split()), one.kind, _box(places, content), round(one.sure, 3))
            for one, places in zip(readings, corners, strict=True)
        ]
        return tuple(sorted(texts, key=lambda text: (text.box.top, text.box.left, text.text)))

    @cached_property
    def _loaded(self) -> RapidOCR:
        paths = {f"{part}.model_path": str(path) for part, path in _models().items()}
        return self._engine(params={**_PARAMETERS, **paths})


def _turn(shown: Pixels, corners: Sequence[Corners], readings: list[_Reading], reader: RapidOCR) -> None:
    """Read doubtful boxes again, upside down and mirrored; a reading that may identify replaces the first one."""
    doubtful: list[int] = []
    crops: list[Pixels] = []
    for place, reading in enumerate(readings):
        if reading.kind.identifying or not _doubtful(reading, *_size(corners[place])):
            continue
        crop = _upright(shown, corners[place])
        if _has_strokes(crop):
            doubtful.append(place)
            crops += [
                np.ascontiguousarray(turned) for turned in (crop[::-1, ::-1], crop[:, ::-1], crop[::-1])
            ]
    if not crops:
        return
    read = reader.recognize_txt(crops)
    turned = [_Reading(words, float(sure)) for words, sure in zip(read.txts, read.scores, strict=True)]
    for number, place in enumerate(doubtful):
        best = max(turned[3 * number : 3 * number + 3], key=lambda one: one.sure)
        if best.sure >= SURE_TURNED and best.kind.identifying:
            readings[place] = best


def _doubtful(reading: _Reading, width: int, height: int) -> bool:
    """Return True if a box is long, and its reading is unsure or too short."""
    longer, shorter = (height, width) if height >= _LINE * width else (width, height)
    if longer < _LINE * shorter:
        return False
    return reading.sure < SURELY or reading.letters < 0.8 * longer / shorter


def _has_strokes(crop: Pixels) -> bool:
    gray = cv2.cvtColor(crop, cv2.COLOR_BGR2GRAY)
    edges = cv2.morphologyEx(gray, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    return float((edges > _STROKE_LEVELS).mean()) > 0.1


def _upright(shown: Pixels, corners: Corners) -> Pixels:
    """Return the part of an image within four corners, clockwise from the upper left, as a line from left to right."""
    width, height = _size(corners)
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    matrix = cv2.getPerspectiveTransform(corners, target)
    line = cv2.warpPerspective(
        shown, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.ascontiguousarray(np.rot90(line) if height >= _LINE * width else line)


def _size(corners: Corners) -> tuple[int, int]:
    """Return width and height of a box in pixels."""
    width = max(_distance(corners[0], corners[1]), _distance(corners[2], corners[3]))
    height = max(_distance(corners[0], corners[3]), _distance(corners[1], corners[2]))
    return max(1, round(width)), max(1, round(height))


def _distance(one: Corners, other: Corners) -> float:
    return float(np.hypot(*(one - other)))


def _box(corners: Corners, content: Box) -> Box:
    """Return the bounding box of four corners, in the coordinates of the whole image."""
    left, top = (max(0, int(value)) for value in np.floor(np.min(corners, axis=0)))
    right, bottom = (int(value) for value in np.ceil(np.max(corners, axis=0)))
    right, bottom = min(right, content.width), min(bottom, content.height)
    return Box(left, top, max(1, right - left), max(1, bottom - top)).moved(content.left, content.top)


def _widened(shown: Pixels) -> Pixels:
    """Pad a strip with black to the right or below, if shrinking would leave none of it."""
    height, width = shown.shape[:2]
    least = -(-max(height, width) // _LONGEST)
    below, right = max(0, least - height), max(0, least - width)
    if max(height, width) <= _MOST_SIDE or not (below or right):
        return shown
    return np.asarray(cv2.copyMakeBorder(shown, 0, below, 0, right, cv2.BORDER_CONSTANT))


def _content(pixels: Pixels) -> Box | None:
    """Return the bounding box of everything brighter than black, with a margin; None for a black image."""
    red, green, blue = cv2.split(np.ascontiguousarray(pixels))
    bright = cv2.compare(cv2.max(cv2.max(red, green), blue), DARK, cv2.CMP_GT)
    box = Box(*cv2.boundingRect(bright))
    return box.grown(16, pixels.shape[1], pixels.shape[0]) if box.width else None
