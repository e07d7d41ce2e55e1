"""Raw pairs of a collector: a folder with `pairs.csv`, `before/` and `after/`.

The table has one row per pair; see `COLUMNS`. Without file names in it, the images are `before/ID.*` and `after/ID.*`.
Each pair is checked for text and faces, aligned, cut to the area that both images show, and resized.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plantain.bench.benchmark.medebench import canonical_organ
from plantain.bench.benchmark.samples import SYNTHETIC_TRUTH, is_inside
from plantain.bench.prepare.alignment import Alignment, align, apply_alignment, common_rectangle
from plantain.files.opening import check_inside, read_regular
from plantain.files.source_type import declared_synthetic
from plantain.files.tables import read_table
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode_untrusted, grey_bits, one_line
from plantain.pixels.encode import resize
from plantain.privacy.faces import photographed_faces
from plantain.privacy.small_text import small_texts
from plantain.privacy.text import TextReader
from plantain.records import InputError, Licence
from plantain.records.messages import counted, suggest

TABLE = "pairs.csv"

COLUMNS = {
    "id": "names the pair; letters, digits, '.', '_' and '-'",
    "organ": "one of MedEBench's thirteen organs, or another",
    "task": "kind of change; tables group by it",
    "prompt": "the instruction; may be empty if a describer writes it",
    "rephrased": "a paraphrase of it",
    "detailed": "the expected change in one sentence",
    "modality": "imaging modality",
    "key_concept": "the words whose attention should be on the region",
    "licence": "open, attribution, credentialed or unknown",
    "patient": "a name or number of the patient; only its hash is kept",
    "url": "source of the pair; only its hash is kept",
    "before": "file name in the folder before/",
    "after": "file name in the folder after/",
}
NEEDED = ("id", "organ", "task")
INDEX = ("index", "level_0")
"""Columns that pandas writes for the index of a table; they are ignored."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
_NO_TRUTH = (
    "; a benchmark needs the true image after each edit; without one: ingest and build, then bench from-build"
)


@dataclass(frozen=True, slots=True)
class RawPair:
    """One row of `pairs.csv` with its two image files; an empty cell is "".

    Attributes:
        id, organ, task, prompt, rephrased, detailed, key_concept: as in `Sample`.
        modality: imaging modality, in the owner's words.
        licence: licence of the images.
        patient: name or number of the patient, not hashed yet.
        url: source of the pair, not hashed yet.
        before, after: paths of the two images.
    """

    id: str
    organ: str
    task: str
    prompt: str
    rephrased: str
    detailed: str
    key_concept: str
    modality: str
    licence: Licence
    patient: str
    url: str
    before: Path
    after: Path


def read_raw(raw: Path) -> list[RawPair]:
    """Return every row of `pairs.csv`.

    Raises:
        InputError: a row cannot be used; the message names the first, with line and column, and counts the others.
    """
    path = raw / TABLE
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; it needs the columns {', '.join(NEEDED)} (and usually prompt), next to the images "
            "before/ID.png and after/ID.png"
        )
    check_inside(raw, path)
    problems: list[str] = []
    pairs: list[RawPair] = []
    seen: dict[str, int] = {}
    for line, row in _rows(path):
        try:
            pair = _pair(raw, row)
            if pair.id.casefold() in seen:
                raise InputError(f"id: {pair.id!r} is in line {seen[pair.id.casefold()]} too")
        except InputError as error:
            problems.append(f"line {line}: {error}")
            continue
        seen[pair.id.casefold()] = line
        pairs.append(pair)
    if problems:
        more = f" (and {len(problems) - 1} more lines)" if problems[1:] else ""
        raise InputError(f"{path}: {problems[0]}{more}")
    if not pairs:
        raise InputError(f"{path}: no rows")
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    table = read_table(path)
    names = {column: column.casefold().replace(" ", "_") for column in table.columns}
    missing = [name for name in NEEDED if name not in names.values()]
    needed = f"; the table needs {', '.join(NEEDED)}" if missing else ""
    for name in names.values():
        if name not in COLUMNS and name not in INDEX:
            near = suggest(name, COLUMNS, "prompt" if name == "instruction" else None)
            raise InputError(f"{path}: column {one_line(name)!r} is not known; {near}{needed}")
    if missing or len(set(names.values())) < len(names):
        problem = f"{', '.join(missing)} missing" if missing else "one occurs twice"
        raise InputError(f"{path}: columns: {problem}")
    for line, cells, _ in table.whole_rows():
        yield line, {names[column]: cell for column, cell in cells.items()}


def _pair(raw: Path, row: dict[str, str]) -> RawPair:
    for name in NEEDED:
        if not row[name]:
            raise InputError(f"{name}: is empty")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", row["id"]):
        raise InputError(f"id: {one_line(row['id'])[:60]!r}; an id becomes a file name: {COLUMNS['id']}")
    licence = row.get("licence", "") or Licence.UNKNOWN.value
    if licence not in set(Licence):
        raise InputError(f"licence: {one_line(licence)[:40]!r}; choose one of {', '.join(Licence)}")
    fields: dict[str, Any] = {
        name: row.get(name, "") for name in COLUMNS if name not in ("licence", "before", "after")
    }
    fields |= {"organ": canonical_organ(row["organ"])[0], "task": row["task"].rstrip(". ")}
    fields |= {name: _file(raw / name, row, name) for name in ("before", "after")}
    return RawPair(**fields, licence=Licence(licence))


def _file(folder: Path, row: dict[str, str], column: str) -> Path:
    named = row.get(column, "")
    if named:
        if not is_inside(named):
            raise InputError(f"{column}: {one_line(named)[:80]!r} is outside {folder.name}/")
        if not (folder / named).is_file():
            raise InputError(f"{column}: {folder.name}/{one_line(named)[:80]}: no such file")
        return folder / named
    found = [folder / f"{row['id']}{s}" for suffix in SUFFIXES for s in (suffix, suffix.upper())]
    found = [path for path in found if path.is_file()]
    if len(found) != 1:
        files = f"{counted(len(found), 'file')} {folder.name}/{row['id']}.*, not one ({', '.join(SUFFIXES)})"
        raise InputError(f"{column}: {files}{_NO_TRUTH if column == 'after' and not found else ''}")
    return found[0]


SIDE = 512
"""Longest side in pixels, as in MedEBench."""

PIXEL_ALIGNED = 0.9
"""SSIM on the overlap from which a pair counts as aligned pixel by pixel."""


@dataclass(frozen=True, slots=True)
class PairRules:
    """The conditions that a raw pair must meet, and the size of prepared images.

    Attributes:
        side: longest side of the prepared images in pixels.
        keep_unaligned: keep pairs that cannot be aligned, as they are and marked.
        accept_text, accept_faces: keep pairs with identifying text, or with a face.
        reader: reads text; None if none is installed.
    """

    side: int = SIDE
    keep_unaligned: bool = False
    accept_text: bool = False
    accept_faces: bool = False
    reader: TextReader | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPair:
    """A raw pair after alignment and cropping.

    Attributes:
        previous, changed: uint8 (H, W, 3), of one size.
        in_place: True if alignment succeeded.
        aligned: True if the images are aligned pixel by pixel.
        notes: processing steps, a line each.
        sha256: SHA-256 of the file of the image before.
        synthetic: True if that file declares itself synthetic. A note marks a synthetic image after.
    """

    previous: Pixels
    changed: Pixels
    in_place: bool
    aligned: bool
    notes: tuple[str, ...]
    sha256: str
    synthetic: bool


def prepare_pair(before: Path, after: Path, rules: PairRules) -> PreparedPair | str:
    """Check, align and crop a raw pair of image files; return it, or the reason for refusing it."""
    names = [f"{path.parent.name}/{path.name}" for path in (before, after)]
    files = [read_regular(path, name) for path, name in zip((before, after), names, strict=True)]
    try:
        bits = max(map(grey_bits, files, names))
        previous, changed = (decode_untrusted(*file, bits) for file in zip(files, names, strict=True))
    except BadImage as error:
        return str(error)
    if min(*previous.shape[:2], *changed.shape[:2]) < 64:
        return "an image has less than 64 pixels on a side"
    shown = _identifying(previous, changed, rules)
    if shown:
        return shown
    alignment = align(previous, changed)
    why = alignment.refusal
    if why and not rules.keep_unaligned:
        return why
    notes = [alignment.line] if not why else [f"not aligned: {why}"]
    first, second, cut = _in_one_frame(previous, changed, None if why else alignment, rules.side)
    if cut < 0.999:
        notes.append(f"cut to the {cut:.0%} of the image before that both images show")
    if term := declared_synthetic(files[0]):
        notes.append(f"the image before is synthetic: declared in its file ({term})")
    if truth := declared_synthetic(files[1]):
        notes.append(f"{SYNTHETIC_TRUTH}: declared in the file of the image after ({truth})")
    aligned = not why and alignment.similarity >= PIXEL_ALIGNED
    sha256 = hashlib.sha256(files[0]).hexdigest()
    return PreparedPair(first, second, not why, aligned, tuple(notes), sha256, bool(term))


def _identifying(previous: Pixels, changed: Pixels, rules: PairRules) -> str:
    """Return why a pair may identify a patient, without the text itself; "" if it is accepted."""
    for name, pixels in (("before", previous), ("after", changed)):
        if rules.reader is not None and not rules.accept_text:
            texts = (*rules.reader.read(pixels), *small_texts(pixels, rules.reader))
            kinds = sorted({text.kind.value for text in texts if text.kind.identifying})
            if kinds:
                return f"the image {name} contains text that may identify a patient ({', '.join(kinds)})"
        if not rules.accept_faces and photographed_faces(pixels):
            return f"the image {name} shows a face"
    return ""


def _in_one_frame(
    previous: Pixels, changed: Pixels, alignment: Alignment | None, side: int
) -> tuple[Pixels, Pixels, float]:
    """Return both images in one frame, and the remaining share of the image before."""
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
