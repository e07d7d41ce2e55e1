"""Bring one raw pair into one frame: check for text and faces, align, cut to what both show, resize."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.samples import SYNTHETIC_TRUTH
from plantain.bench.prepare.alignment import (
    LEAST_QUALITY,
    Alignment,
    align,
    apply_alignment,
    common_rectangle,
)
from plantain.files.opening import read_regular
from plantain.files.source_type import declared_synthetic
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode_untrusted, grey_bits
from plantain.pixels.prepare import resize
from plantain.privacy.faces import photographed_faces
from plantain.privacy.small_text import small_texts
from plantain.privacy.text import TextReader
from plantain.privacy.text_reader import reader_named

SIDE = 512
"""Longest side in pixels, as in MedEBench."""

PIXEL_ALIGNED = 0.9
"""SSIM on the overlap from which a pair counts as aligned pixel by pixel."""


@dataclass(frozen=True, slots=True)
class PairRules:
    """What a pair must meet.

    Attributes:
        side: longest side of the prepared images in pixels.
        least_quality: alignment quality below which a pair is refused.
        keep_unaligned: keep pairs that cannot be aligned, as they are and marked.
        accept_text, accept_faces: keep pairs that show what may identify a person.
        reader: reads text; None if none is installed.
    """

    side: int = SIDE
    least_quality: float = LEAST_QUALITY
    keep_unaligned: bool = False
    accept_text: bool = False
    accept_faces: bool = False
    reader: TextReader | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPair:
    """A pair in one frame.

    Attributes:
        previous, changed: uint8 (H, W, 3), of one size.
        in_place: it could be aligned.
        aligned: pixel by pixel.
        notes: what was done, in a line each.
        sha256: of the file of the image before.
        synthetic: that file declares itself synthetic; for the image after, a note says so.
    """

    previous: Pixels
    changed: Pixels
    in_place: bool
    aligned: bool
    notes: tuple[str, ...]
    sha256: str
    synthetic: bool


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file of a pair: its bytes, and its name for messages."""

    data: bytes
    name: str

    @classmethod
    def read(cls, path: Path) -> RawFile:
        name = f"{path.parent.name}/{path.name}"
        return cls(read_regular(path, name), name)


def prepare_pair(before: RawFile, after: RawFile, rules: PairRules) -> PreparedPair | str:
    """Return the pair in one frame, or why it is refused."""
    try:
        bits = max(grey_bits(file.data, file.name) for file in (before, after))
        previous = decode_untrusted(before.data, before.name, bits)
        changed = decode_untrusted(after.data, after.name, bits)
    except BadImage as error:
        return str(error)
    if min(*previous.shape[:2], *changed.shape[:2]) < 64:
        return "an image has less than 64 pixels on a side"
    shown = _identifying(previous, changed, rules)
    if shown:
        return shown
    alignment = align(previous, changed)
    why = alignment.refused_below(rules.least_quality)
    if why and not rules.keep_unaligned:
        return why
    notes = [alignment.line] if not why else [f"not aligned: {why}"]
    first, second, cut = _in_one_frame(previous, changed, None if why else alignment, rules.side)
    if cut < 0.999:
        notes.append(f"cut to the {cut:.0%} of the image before that both images show")
    if term := declared_synthetic(before.data):
        notes.append(f"the image before is synthetic: its file says so ({term})")
    if truth := declared_synthetic(after.data):
        notes.append(f"{SYNTHETIC_TRUTH}: the file of the image after says so ({truth})")
    aligned = not why and alignment.similarity >= PIXEL_ALIGNED
    sha256 = hashlib.sha256(before.data).hexdigest()
    return PreparedPair(first, second, not why, aligned, tuple(notes), sha256, bool(term))


def prepared_there(
    before: RawFile, after: RawFile, rules: PairRules, reads: str
) -> PreparedPair | str | None:
    """`prepare_pair` on a worker of an engine; None if it has no reader of that name. `rules` have no reader."""
    reader = reader_named(reads) if reads else None
    if reads and reader is None:
        return None
    return prepare_pair(before, after, replace(rules, reader=reader))


def _identifying(previous: Pixels, changed: Pixels, rules: PairRules) -> str:
    """Return why a pair may identify somebody, without what was read; "" if nothing was found or it is accepted."""
    for name, pixels in (("before", previous), ("after", changed)):
        if rules.reader is not None and not rules.accept_text:
            texts = (*rules.reader.read(pixels), *small_texts(pixels, rules.reader))
            kinds = sorted({text.kind.value for text in texts if text.kind.identifying})
            if kinds:
                return f"the image {name} holds text that may identify a person ({', '.join(kinds)})"
        if not rules.accept_faces and photographed_faces(pixels):
            return f"the image {name} shows a face"
    return ""


def _in_one_frame(
    previous: Pixels, changed: Pixels, alignment: Alignment | None, side: int
) -> tuple[Pixels, Pixels, float]:
    """Return both images at the same size and place, and the share of the image before that is left."""
    height, width = previous.shape[:2]
    scale = min(1.0, side / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    before = resize(previous, *size)
    if alignment is None:
        return _to_side(before, side), _to_side(resize(changed, *size), side), 1.0
    shrink = min(1.0, scale * float(np.sqrt(abs(np.linalg.det(alignment.matrix[:, :2])))))
    small = (max(1, round(changed.shape[1] * shrink)), max(1, round(changed.shape[0] * shrink)))
    matrix = alignment.matrix.copy()
    matrix[:, 0] *= changed.shape[1] / small[0]
    matrix[:, 1] *= changed.shape[0] / small[1]
    matrix[0] *= size[0] / width
    matrix[1] *= size[1] / height
    if np.allclose(matrix, np.eye(2, 3), atol=1e-6) and small == size:
        after, covered = resize(changed, *size), np.ones(before.shape[:2], bool)
    else:
        after, covered = apply_alignment(resize(changed, *small), matrix, size)
    left, top, wide, high = common_rectangle(covered)
    place = np.s_[top : top + high, left : left + wide]
    cut = wide * high / (size[0] * size[1])
    return _to_side(before[place], side), _to_side(after[place], side), cut


def _to_side(pixels: Pixels, side: int) -> Pixels:
    height, width = pixels.shape[:2]
    scale = side / max(height, width)
    return np.ascontiguousarray(resize(pixels, max(1, round(width * scale)), max(1, round(height * scale))))
