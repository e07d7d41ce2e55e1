"""Text burned into an image: its kinds (marker, device, possible identity), its changes, and a metric of them.

The lists of words are plantain's own choice. Text that is not known to be harmless counts as an identity. Reading costs
a second, so an edit is read only where it matters: around known text whose pixels changed, and where strokes appeared.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import cv2
import numpy as np

from plantain.metrics import Metric, MetricSample
from plantain.metrics.metric import Measured, Networks
from plantain.pixels.arrays import Image, Pixels
from plantain.pixels.boxes import Box
from plantain.records import Score

SURE = 0.6
"""Least confidence of a reading that counts; real letters read above 0.85, texture mostly below 0.6."""


class TextKind(StrEnum):
    """Kind of a piece of text. The last four may identify a patient."""

    MARKER = "marker"
    DEVICE = "device"
    STRAY = "stray"
    DATE = "date"
    NUMBER = "number"
    NAME = "name"
    OTHER = "other"

    @property
    def identifying(self) -> bool:
        """True if text of this kind may identify a patient, so that a reviewer must see the image."""
        return self in (TextKind.DATE, TextKind.NUMBER, TextKind.NAME, TextKind.OTHER)


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text in an image with its box; `sure` is the reader's confidence, in [0, 1]."""

    text: str
    kind: TextKind
    box: Box
    sure: float


class TextReader(Protocol):
    """Reads burned-in text. `name` changes with every version that may read differently."""

    name: str

    def read(self, pixels: Pixels) -> tuple[Text, ...]:
        """Read the text in an image, uint8 (H, W, 3), from top to bottom. Thread-safe."""
        ...


_MARKERS = frozenset(
    re.findall(
        r"\w+",
        "L R LT RT LEFT RIGHT AP PA LAT LATERAL LL RL FRONTAL PORTABLE PORT MOBILE ERECT UPRIGHT SUPINE PRONE SITTING "
        "SEMI STANDING DECUB DECUBITUS RECUMBENT INSP EXP INSPIRATION EXPIRATION A P H F S I RA LA RP LP AR AL PR PL "
        "OD OS OU HFS FFS",
    )
)
"""Laterality, view and position, as technologists place them; letters at the edges of slices; the eyes."""

_DEVICE_WORDS = frozenset(
    re.findall(
        r"\w+",
        "MI TI TIS TIB TIC GN GAIN DR DYN THI HGEN GEN HPEN PEN PWR RES PMED PLOW PHIGH LOW MED HIGH MAP HZ KHZ MHZ DB "
        "FPS BPM CM MM KV KVP MA MAS MSEC SEC MS CINE ZOOM WL WW WC TR TE ET FA NEX FOV SL THK T1 T2 FLAIR PD DWI ADC "
        "AX COR SAG AXIAL CORONAL SAGITTAL CXR CHEST 2D 3D",
    )
)
_UNIT = "%|CM/S|M/S|CM|MM|KHZ|MHZ|HZ|DB|FPS|BPM|KVP?|MAS?|MS|S|X"
_QUANTITY = re.compile(rf"[+-]?(\d{{0,3}}([.,]\d{{1,3}})?|\d{{0,4}}([.,]\d{{1,3}})?({_UNIT}))")
"""Four digits need a unit: without one they may be a time, a room or part of a number."""

_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DATE = re.compile(
    r"\d{1,4}\s?[-/.]\s?(\d{1,2}|[A-Z]{3})\s?[-/.]\s?\d{1,4}|\d{1,2}\s?[A-Z]{3}\w*\s?,?\s?\d{4}|"
    r"\d{1,2}:\d{2}|(?<![\d.])(19|20)\d\d(?![\d.])"
)


def classify(text: str) -> TextKind:
    """Return the kind of a piece of text, judged by its characters only.

    Fewer than three letters or digits (two ideographs) that are not a marker are stray: OCR reads such from texture at
    any confidence, and they identify no patient. All other text that is not known to be harmless may be an identity.
    """
    plain = unicodedata.normalize("NFKC", text).upper()
    words = plain.split()
    bare = re.findall(r"[^\W_]+", plain)
    letters = "".join(bare)
    if letters and all(word in _MARKERS for word in bare):
        return TextKind.MARKER
    if len(_IDEOGRAPH.findall(letters)) >= 2:
        return TextKind.NAME
    if len(letters) < 3:
        return TextKind.STRAY
    if _DATE.search(plain):
        return TextKind.DATE
    if all(_is_device(word) for word in words):
        return TextKind.DEVICE
    if sum(map(str.isdigit, letters)) >= 4:
        return TextKind.NUMBER
    return TextKind.NAME if re.search(r"[^\W\d_]{3}", plain) else TextKind.OTHER


def _is_device(word: str) -> bool:
    """Return True for a number of at most four digits, with or without a unit, or a word of scanners ("MI:1.4")."""
    parts = [part for part in re.split(r"[:/=<>]+", word.strip(".,:/+-")) if part]
    return all(
        part in _DEVICE_WORDS or part in _MARKERS or _QUANTITY.fullmatch(part) is not None
        for part in (re.sub(r"^(MI|TI[SBC]?)(?=\d)", "", part) for part in parts)
    )


def shifted(text: Text, across: int, down: int) -> Text:
    """Move a text's box by (across, down) pixels, e.g. from a part of an image to the whole."""
    return replace(text, box=text.box.moved(across, down))


def enlarged(text: Text, by: float) -> Text:
    """Scale a text's box by the factor `by`, as in an image that is `by` times as large."""
    box = text.box
    left, top = int(box.left * by), int(box.top * by)
    return replace(text, box=Box(left, top, max(1, round(box.width * by)), max(1, round(box.height * by))))


STROKE_LEVELS = 28.0
"""Grey levels by which the local contrast of fine structure must grow for a stroke; fainter letters are not legible."""

STROKE_PX = 60
"""Least number of such pixels near each other, at 1024 pixels of width: a letter L of 20 pixels has more."""

_ALIKE_LEVELS, _ALIKE = 10.0, 0.9
_AROUND = 24
_NEAR = 12
_SHARP_LEVELS = 80.0


@dataclass(frozen=True, slots=True)
class TextChange:
    """One piece of text that an edit changed.

    Attributes:
        added: True for text of the edited image only; False for text of the original that is lost, moved or changed.
        marker: the marker; "" for other text, which is not repeated since it may look like a name.
        box: box of the text in the original; of added text, in the edited image.
    """

    added: bool
    marker: str
    box: Box

    def __str__(self) -> str:
        subject = f"marker {self.marker}" if self.marker else "text"
        return f"{subject} {'added' if self.added else 'changed'} at ({self.box.left}, {self.box.top})"


def text_changes(before: Pixels, after: Pixels, reader: TextReader) -> tuple[TextChange, ...]:
    """Find changes of burned-in text between an original and its edit, both uint8 (H, W, 3) of one size.

    Args:
        before, after: original and edited image.
        reader: the text reader.

    Returns:
        The changes, by position; empty for an edit that kept every marker and added no text.
    """
    was, now = _contrast(before), _contrast(after)
    came = _new_strokes(was, now)
    # Where no stroke appeared or disappeared, no letter did either.
    if not came and not _new_strokes(now, was):
        return ()
    kept = [
        text for text in reader.read(before) if text.kind is not TextKind.STRAY or _drawn(before, text.box)
    ]
    touched = [text for text in kept if not _alike(before, after, text.box)]
    regions = [*came, *(_around(text.box, after) for text in touched)]
    if not regions:
        return ()
    region = _hull(regions)
    found = [
        shifted(text, region.left, region.top)
        for text in reader.read(np.ascontiguousarray(region.cut(after)))
    ]
    found = [text for text in found if not _alike(before, after, text.box)]
    changes = [TextChange(False, _marker(text), text.box) for text in touched if not _is_among(text, found)]
    new = [
        text for text in found if _counts(text) and not any(_same_place(text.box, old.box) for old in touched)
    ]
    if new:
        # An editor that redraws the whole image also redraws text of the original that was not read before.
        there = reader.read(np.ascontiguousarray(region.cut(before)))
        new = [
            text for text in new if not _is_among(text, [shifted(t, region.left, region.top) for t in there])
        ]
    changes += [TextChange(True, _marker(text), text.box) for text in new]
    return tuple(sorted(changes, key=lambda change: (change.box.top, change.box.left, change.added)))


def _marker(text: Text) -> str:
    return text.text if text.kind is TextKind.MARKER else ""


def _counts(text: Text) -> bool:
    """Return True if a reading is certainly text; texture is sometimes read as a stray sign or a single letter."""
    if text.kind is TextKind.MARKER:
        return text.sure >= 0.8 and (len(_plain(text)) > 1 or _plain(text) in "LR")
    return text.kind is not TextKind.STRAY


def _plain(text: Text) -> str:
    return "".join(char for char in text.text.upper() if char.isalnum())


def _same_place(one: Box, other: Box) -> bool:
    """Return True if two boxes have about the same middle."""
    slack = max(12.0, 0.6 * max(min(one.width, other.width), min(one.height, other.height)))
    (x, y), (u, v) = one.middle, other.middle
    return abs(x - u) <= slack and abs(y - v) <= slack


def _is_among(text: Text, others: Sequence[Text]) -> bool:
    """Return True if the same text was read at the same place."""
    return any(_plain(other) == _plain(text) and _same_place(text.box, other.box) for other in others)


def _alike(before: Pixels, after: Pixels, box: Box) -> bool:
    """Return True if a box is alike in both images, up to a codec's noise or a change of brightness."""
    height, width = before.shape[:2]
    larger = box.grown(3, width, height)
    one, other = (larger.cut(pixels).astype(np.float32).mean(axis=2) for pixels in (before, after))
    if float(np.abs(one - other).mean()) < _ALIKE_LEVELS / 3:
        return True
    one, other = one - one.mean(), other - other.mean()
    spread = float(np.sqrt((one**2).mean() * (other**2).mean()))
    return float(np.abs(one - other).mean()) < _ALIKE_LEVELS or (
        spread > 1.0 and float((one * other).mean()) / spread > _ALIKE
    )


def _drawn(pixels: Pixels, box: Box) -> bool:
    """Return True if a box has the sharp strokes of a marker, which texture has not."""
    return float((_contrast(np.ascontiguousarray(box.cut(pixels))) > _SHARP_LEVELS).mean()) > 0.1


def _new_strokes(was: Image, now: Image) -> list[Box]:
    """Return places where fine, strong structure appeared, by the contrast before and after."""
    grown = np.asarray(cv2.subtract(now, was) > STROKE_LEVELS, np.uint8)
    bounds = Box(*cv2.boundingRect(grown))
    if not bounds.width:
        return []
    bounds = bounds.grown(_NEAR, now.shape[1], now.shape[0])  # most edits are small: the rest has no stroke
    strokes = bounds.cut(grown)
    near = cv2.dilate(strokes, np.ones((2 * _NEAR + 1, 2 * _NEAR + 1), np.uint8))
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(near)
    sizes = np.bincount(labels[strokes > 0], minlength=count)
    least = STROKE_PX * now.shape[1] / 1024
    found = (
        Box(*(int(value) for value in boxes[label][:4])) for label in range(1, count) if sizes[label] >= least
    )
    return [replace(box, left=box.left + bounds.left, top=box.top + bounds.top) for box in found]


def _contrast(pixels: Pixels) -> Image:
    """Return the strength of structure a few pixels wide: the range of grey levels in a 5x5 window."""
    gray = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.morphologyEx(gray, cv2.MORPH_GRADIENT, np.ones((5, 5), np.uint8)))


def _around(box: Box, pixels: Pixels) -> Box:
    return box.grown(_AROUND, pixels.shape[1], pixels.shape[0])


def _hull(boxes: Sequence[Box]) -> Box:
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    return Box(left, top, max(box.right for box in boxes) - left, max(box.bottom for box in boxes) - top)


READERS = ThreadPoolExecutor(min(4, os.cpu_count() or 1), "text")
"""Few threads, as the text reader of each needs about 200 MB."""


class TextKept(Metric):
    """1 where an output left text alone and drew none, else 0; another reader is another version of it.

    A build fails such edits; a benchmark keeps them, and the mean is the share of outputs that left text alone.
    """

    name, label, low, high = "text_kept", "share that left burned-in text alone and drew none", 0.0, 1.0
    uses = "text reader"

    def __init__(self, reader: TextReader) -> None:
        super().__init__()
        self.version = f"1, {reader.name}"
        self._reader = reader

    @classmethod
    def open(cls, networks: Networks) -> Metric | str:
        from plantain.privacy.rapid_text import open_reader, why_no_reader

        reader = open_reader()
        return cls(reader) if reader is not None else why_no_reader()

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        changes = READERS.submit(text_changes, sample.before, output, self._reader).result()
        return Score(0.0 if changes else 1.0), {"changes": [str(change) for change in changes]}
