"""Rows of published edits from CSV, JSON Lines, Parquet, a folder of them, or Med-Banana's tree, streamed."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from plantain.files.opening import check_inside, files_like
from plantain.files.parquet import header_of, rows_of_table
from plantain.files.tables import read_table, stated_cell
from plantain.findings import load_taxonomy
from plantain.records import InputError
from plantain.records.messages import fold, nearest, suggest
from plantain.release.importing.published import PublishedTree

ENDINGS = (".csv", ".tsv", ".csv.gz", ".xlsx", ".jsonl", ".ndjson", ".parquet")
IMAGES = (".jpg", ".jpeg", ".png")

CALLED: Mapping[str, tuple[str, ...]] = {
    "original": ("original", "original_image", "source_image", "input_image", "before", "source", "input"),
    "edited": ("edited", "edited_image", "output_image", "target_image", "after", "output", "target"),
    "instruction": ("instruction", "prompt", "edit_prompt", "text"),
    "finding": ("finding", "disease", "label", "concept"),
    "modality": ("modality",),
    "direction": ("direction", "task", "action"),
    "verdict": ("verdict", "qualified", "success", "outcome"),
    "model": ("model", "editor"),
    "group": ("group", "patient", "patient_id", "subject_id"),
    "licence": ("licence", "license"),
    "id": ("id", "row_id", "key"),
}
"""Names of each column; the first that is there is used."""
NEEDED = ("original", "edited", "finding", "modality", "direction")
CONSTANT = tuple(role for role in CALLED if role not in ("original", "edited", "id"))
"""Roles that may have one value for all rows."""

LONGEST_NAME = 1024
_ALIKE = 0.85
"""Least likeness of a modality to one of ours that makes it a misspelling of it."""

_MODALITIES = dict.fromkeys(("chestxray", "cxr", "xray", "chest"), "chest_xray")
_MODALITIES |= dict.fromkeys(("mri", "brain"), "brain_mri")
_MODALITIES |= dict.fromkeys(("retina", "fundusphotograph"), "fundus")

_GUESSED = dict.fromkeys(("add", "insert", "introduce", "simulate"), "add")
_GUESSED |= dict.fromkeys(("remove", "erase", "delete", "eliminate"), "remove")
"""Words of an instruction that show its direction, where the table has none."""


@dataclass(frozen=True, slots=True)
class RowImage:
    """An image named by a row.

    Attributes:
        name: path of the file as the row writes it; "" if it gives none.
        data: bytes of the image; None if they are in the file.
        root: folder of the file; None for the table's folder.
    """

    name: str
    data: bytes | None = None
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class PairRow:
    """One row of a table of published edits; an empty cell is "".

    Attributes:
        id: id of the row.
        row: line of the row; of Parquet its number.
        original: the image before; None if it is missing.
        original_name: name of the image before, also if its file is missing.
        edited: the image after.
        finding, modality, direction: as written; matched with the taxonomy later.
        verdict: the published verdict.
        model: the editor.
        group: the patient or study.
        licence, dataset: licence and dataset of the image before.
        own_modality: None except for edits of a benchmark, which are resized to the shape of their original. If True,
            the modality is kept as the benchmark writes it: its "MRI" may be of any organ.
    """

    id: str
    row: int
    original: RowImage | None
    original_name: str
    edited: RowImage
    instruction: str
    finding: str
    modality: str
    direction: str
    verdict: str = ""
    model: str = ""
    group: str = ""
    licence: str = ""
    dataset: str = ""
    own_modality: bool | None = None


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that cannot be imported: its line (of Parquet its number), its id, and the reason with the field's name."""

    row: int
    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class TableRules:
    """The user's options for reading a table of edits.

    Attributes:
        columns: role -> column, if the column has an unusual name.
        constants: role -> value of all rows; a licence only of rows that state none.
        originals: a folder with originals, found by the names in rows.
        unused: receives the columns that no role uses.
    """

    columns: Mapping[str, str]
    constants: Mapping[str, str]
    originals: Originals | None
    unused: list[str]


def rows_of(path: Path, rules: TableRules) -> tuple[Path, Iterator[PairRow | RejectedRow]]:
    """Open a set of published edits; return (folder to which the rows' file names are relative, iterator over rows).

    Args:
        path: a table, a folder that contains one or shards of one, or Med-Banana's tree.
        rules: how the user wants a table to be read.

    Raises:
        InputError: the path has no readable set of edits; while iterating, that columns are missing.
    """
    check_roles(rules.columns, rules.constants)
    if path.is_dir():
        tables = tables_in(path)
        if not tables and PublishedTree.recognised(path):
            return path, _tree(path, rules.originals)
        if not tables:
            raise InputError(
                f"{path}: no metadata.csv, .jsonl or .parquet and no tree of DATASET-edit/FINDING/*.jpeg"
            )
        for table in tables:
            check_inside(path, table)
        return path, chain.from_iterable(_table(table, rules) for table in tables)
    if not path.name.lower().endswith(ENDINGS):
        raise InputError(f"{path}: expected a file that ends in {', '.join(ENDINGS)}, or a folder")
    return path.parent, _table(path, rules)


def check_roles(columns: Mapping[str, str], constants: Mapping[str, str]) -> None:
    """Check that all roles exist. Raise InputError otherwise, with the nearest role."""
    for option, given, allowed in (("--column", columns, tuple(CALLED)), ("--set", constants, CONSTANT)):
        if unknown := [role for role in given if role not in allowed]:
            raise InputError(f"{option} {unknown[0]}: not a role of {option}; {suggest(unknown[0], allowed)}")


def direction_in(instruction: str) -> str:
    """Infer "add" or "remove" from an instruction's words; return "" if they show neither or both."""
    words = re.findall(r"[a-z]+", instruction.lower())
    found = [_GUESSED[one] for one in words if one in _GUESSED]
    return "" if not found or (len(set(found)) > 1 and words[0] not in _GUESSED) else found[0]


def tables_in(folder: Path) -> list[Path]:
    """Find a folder's table of edits: `metadata.*`, or all shards of a Parquet table; return [] without a table."""
    named = [p for p in files_like(folder, "metadata*") if p.name.lower().endswith(ENDINGS)]
    return named[:1] or files_like(folder, "*.parquet") or files_like(folder, "data/*.parquet")


@cache
def modality_of(word: str) -> str | None:
    """Find the taxonomy's modality for a word; return None if unknown. Raise InputError for a misspelling."""
    ours = load_taxonomy().modalities
    known = {fold(name): name for name in ours} | _MODALITIES
    if (found := known.get(fold(word))) is None and (near := nearest(word, ours, _ALIKE)):
        raise InputError(f"modality: {word[:40]!r}: did you mean {near!r}?")
    return found


def _table(path: Path, rules: TableRules) -> Iterator[PairRow | RejectedRow]:
    rows: Iterable[tuple[int, Mapping[str, object], str]]
    if path.suffix == ".parquet":
        named = _columns(path, header_of(path), rules)
        whole = rows_of_table(path, list(dict.fromkeys(named.values())))
        rows = ((number, cells, "") for number, cells in enumerate(whole, 1))
    else:
        table = read_table(path)
        named, rows = _columns(path, table.columns, rules), table.rows
    for number, (line, cells, fault) in enumerate(rows, 1):
        id = str(number)
        try:
            if fault:
                raise InputError(fault)
            id = _text("id", cells.get(named.get("id", ""))) or id
            yield _row(id, line, cells, named, rules)
        except InputError as error:
            yield RejectedRow(line, id, str(error))


def _columns(path: Path, header: Sequence[str], rules: TableRules) -> dict[str, str]:
    """Return the column of each role. Raise InputError with all that are missing."""
    asked = rules.columns
    for role, column in asked.items():
        if column not in header:
            raise InputError(
                f"--column {role}={column}: {path} has no such column; {suggest(column, header)}"
            )
    free = {fold(name): name for name in reversed(header) if name not in asked.values()}
    named = dict(asked)
    for role, names in CALLED.items():
        found = next((free[fold(name)] for name in names if fold(name) in free), None)
        if role not in named and found is not None:
            named[role] = found
    known = {*named, *rules.constants}
    known |= {"original"} if rules.originals is not None else set()
    known |= {"direction"} if "instruction" in known else set()
    modality = rules.constants.get("modality")
    known |= {"finding"} if modality is not None and modality_of(modality) is None else set()
    if missing := [role for role in NEEDED if role not in known]:
        constant = next((role for role in missing if role in CONSTANT), "")
        value = f", or one value for all rows with --set {constant}=VALUE" if constant else ""
        raise InputError(
            f"{path}: no column for the {', '.join(missing)}; name each with --column {missing[0]}=NAME{value}; "
            f"there are {', '.join(map(str, header[:20]))}"
        )
    used = {name for role, name in named.items() if role == "licence" or role not in rules.constants}
    rules.unused.extend(name for name in header if name not in {*used, *rules.unused})
    return named


def _row(
    id: str, line: int, cells: Mapping[str, object], named: Mapping[str, str], rules: TableRules
) -> PairRow:
    def value_of(role: str) -> str:
        cell = _text(role, cells.get(named.get(role, "")))
        return (cell if role == "licence" else "") or rules.constants.get(role, cell)

    original = _image("original", cells.get(named.get("original", "")))
    edited = _image("edited", cells.get(named["edited"]))
    if edited is None:
        raise InputError("edited: is empty")
    called = Path(original.name).stem if original is not None and original.name else ""
    if rules.originals is not None:
        found = rules.originals.find(called or id)
        original = found or (original if original and original.data else None)
    values = {role: value_of(role) for role in CONSTANT}
    return PairRow(
        id=id, row=line, original=original, original_name=called, edited=edited, own_modality=None, **values
    )


def _text(role: str, cell: object) -> str:
    """Return a cell as text, "" for null and NaN. Raise InputError for a list, an object or bytes."""
    cell = _parsed(role, cell)
    if isinstance(cell, Mapping | list | bytes):
        raise InputError(f"{role}: {_kind(cell)}; expected text")
    return "" if cell is None or (isinstance(cell, float) and math.isnan(cell)) else stated_cell(str(cell))


def _image(role: str, cell: object) -> RowImage | None:
    """Return the image of a cell: a path, a data URL, the bytes of a file, or an object as Hugging Face's tables have.

    Raises:
        InputError: it is anything else.
    """
    cell = _parsed(role, cell)
    if cell in (None, "") or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, bytes):
        return RowImage("", cell)
    if isinstance(cell, Mapping) and not {"bytes", "path"}.isdisjoint(cell):
        data, name = cell.get("bytes"), str(cell.get("path") or "").replace("\\", "/")
        if not data:
            return RowImage(name) if name else None
        return RowImage(name, data if isinstance(data, bytes) else _base64(role, data))
    if not isinstance(cell, str):
        raise InputError(f"{role}: {_kind(cell)}; expected the name of a file")
    if cell.startswith("data:"):
        return RowImage("", _base64(role, cell.partition(";base64,")[2]))
    if "://" in cell:
        raise InputError(f"{role}: a web address; download the image and give the name of its file")
    if len(cell) > LONGEST_NAME:
        raise InputError(f"{role}: {len(cell)} characters; expected the name of a file")
    return RowImage(cell.replace("\\", "/"))


def _parsed(role: str, cell: object) -> object:
    """Return a cell that is text with a JSON object or list as that. Raise InputError for half a character."""
    if isinstance(cell, str) and not cell.isascii() and any("\ud800" <= one <= "\udfff" for one in cell):
        raise InputError(f"{role}: has half of a surrogate pair, which is not a character")
    if isinstance(cell, str) and cell[:1] in ("{", "["):
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    return cell


def _kind(cell: object) -> str:
    if isinstance(cell, Mapping):
        return f"an object with {', '.join(map(str, cell))[:80] or 'nothing in it'}"
    return f"a list of {len(cell)}" if isinstance(cell, list) else f"a value of type {type(cell).__name__}"


def _base64(role: str, text: object) -> bytes:
    try:
        data = base64.b64decode(text if isinstance(text, str) else "", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise InputError(f"{role}: bytes that are not base64")
    return data


def _tree(root: Path, joined: Originals | None) -> Iterator[PairRow]:
    """Yield every image of Med-Banana's tree. Its folder is the verdict; everything else is unknown."""
    for number, edit in enumerate(PublishedTree(root).edits(), 1):
        key, path = edit.key, Path(edit.path)
        yield PairRow(
            id=path.stem,
            row=number,
            original=joined.find(key.image_id) if joined is not None else None,
            original_name=f"{key.dataset}-{key.image_id}",
            edited=RowImage(path.relative_to(root).as_posix(), None, root),
            instruction="",
            finding=key.disease.replace("_", " "),
            modality=key.dataset.replace("-", "_").lower(),
            direction=key.direction.value,
            verdict="failed" if edit.failed else "success",
            dataset=key.dataset,
        )


class Originals:
    """Original images of a folder, found by file name, or by the name of a subfolder with only one image."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(f"--originals {root}: no such folder")
        self._root = root
        found = [p for p in files_like(root, "**/*") if p.suffix.lower() in IMAGES and p.is_file()]
        in_folder = Counter(path.parent.name.lower() for path in found)
        alone = {p.parent.name.lower(): p for p in found if in_folder[p.parent.name.lower()] == 1}
        self._files = alone | {path.stem.lower(): path for path in reversed(found)}
        if not self._files:
            raise InputError(f"--originals {root}: contains no image")

    def find(self, name: str) -> RowImage | None:
        """Return the original of that name; None if none has it."""
        path = self._files.get(name.lower())
        return None if path is None else RowImage(path.relative_to(self._root).as_posix(), None, self._root)
