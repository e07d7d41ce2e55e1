"""Text burned into an image: its reader, and its kinds: a marker, a number of the device, or a possible identity.

The lists of words are plantain's own choice. Text that is not known to be harmless counts as an identity. The reader is
rapidocr of the extra `ocr`, with the models of its wheel; nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
import os
import re
import unicodedata
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Protocol

from plantain.files.installed import install_line
from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box

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
        """Return True if a reviewer must see it before the image is used."""
        return self in (TextKind.DATE, TextKind.NUMBER, TextKind.NAME, TextKind.OTHER)


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text in an image; `sure` is the reader's confidence, in [0, 1]."""

    text: str
    kind: TextKind
    box: Box
    sure: float


class TextReader(Protocol):
    """Reads burned-in text. `name` changes with every version that may read differently."""

    name: str

    def read(self, pixels: Pixels) -> tuple[Text, ...]:
        """Return the text in uint8 (H, W, 3), from top to bottom. Thread-safe."""
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
    """Return the kind of a piece of text, by its letters alone.

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
    """Return a text that was read in a part of an image, at (across, down), in coordinates of the whole image."""
    return replace(text, box=text.box.moved(across, down))


def enlarged(text: Text, by: float) -> Text:
    """Return a text in coordinates of an image `by` times as large."""
    box = text.box
    left, top = int(box.left * by), int(box.top * by)
    return replace(text, box=Box(left, top, max(1, round(box.width * by)), max(1, round(box.height * by))))


_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
"""Models that find and read text, inside rapidocr's wheel."""


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
    os.environ.setdefault(
        "ORT_DISABLE_TELEMETRY", "1"
    )  # onnxruntime reports the machine to its maker otherwise
    from plantain.privacy.rapid_text import RapidReader  # half a second

    return RapidReader(_models())


@cache
def _own_reader() -> TextReader | None:
    return open_reader()


def reader_named(name: str) -> TextReader | None:
    """Return this process's own reader, which is cached; None if it has another name."""
    own = _own_reader()
    return own if own is not None and own.name == name else None


def _models() -> dict[str, Path]:
    spec = importlib.util.find_spec("rapidocr")
    folder = Path(spec.origin).parent / "models" if spec is not None and spec.origin else Path()
    return {part: folder / name for part, name in _MODELS.items()}
