"""Rows of published edits from CSV, JSON Lines, Parquet, a folder of them, or Med-Banana's tree, streamed."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import orjson

from plantain.files.installing import install_line
from plantain.files.opening import check_inside, open_regular
from plantain.records import InputError
from plantain.records.suggestions import fold, suggest
from plantain.release.importing.published import PublishedTree

LARGEST_LINE = 64_000_000

_BATCH = 4
"""Rows of Parquet at once: a dictionary can make each of them as large as the largest cell."""

ENDINGS = (".csv", ".jsonl", ".parquet")
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
NEEDED = ("edited", "finding", "modality", "direction")


@dataclass(frozen=True, slots=True)
class RowImage:
    """An image of a row: its bytes, or a file below the table's folder or `root`."""

    name: str
    data: bytes | None = None
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class PairRow:
    """One published edit as its table has it; "" for empty cells."""

    id: str
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


def rows_of(path: Path, columns: Mapping[str, str], originals: Path | None) -> tuple[Path, Iterator[PairRow]]:
    """Return the folder that the rows' files are in, and the rows.

    Args:
        path: a table, a folder that contains one or shards of one, or Med-Banana's tree.
        columns: role -> column.
        originals: a folder whose images are joined by name.

    Raises:
        InputError: nothing there that can be read, or a column is missing.
    """
    if unknown := [role for role in columns if role not in CALLED]:
        raise InputError(f"--column {unknown[0]}: no such column; {suggest(unknown[0], list(CALLED))}")
    joined = _Originals(originals) if originals is not None else None
    if path.is_dir():
        tables = sorted(p for p in path.iterdir() if p.suffix in ENDINGS and p.stem.startswith("metadata"))
        tables = tables[:1] or sorted(path.glob("*.parquet")) or sorted(path.glob("data/*.parquet"))
        if not tables and PublishedTree.recognised(path):
            return path, _tree(path, joined)
        if not tables:
            raise InputError(
                f"{path}: no metadata.csv, .jsonl or .parquet and no tree of DATASET-edit/FINDING/*.jpeg"
            )
        for table in tables:
            check_inside(path, table)
        return path, chain.from_iterable(_table(table, columns, joined) for table in tables)
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: expected a file that ends in {', '.join(ENDINGS)}, or a folder")
    return path.parent, _table(path, columns, joined)


def _table(path: Path, columns: Mapping[str, str], joined: _Originals | None) -> Iterator[PairRow]:
    if path.suffix == ".parquet":
        rows = _parquet(path, columns, joined)
    else:
        rows = _csv(path) if path.suffix == ".csv" else _jsonl(path)
    header = next(rows, None)
    if not header:
        raise InputError(f"{path}: has no rows")
    named = _columns(path, list(header), columns, joined)
    return (_row(number, row, named, joined) for number, row in enumerate(rows, start=1))


def _columns(
    path: Path, header: Sequence[str], asked: Mapping[str, str], joined: _Originals | None
) -> dict[str, str]:
    """Return the column of each role."""
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
    needed = NEEDED if joined is not None else (*NEEDED, "original")
    if missing := next((role for role in needed if role not in named), None):
        raise InputError(
            f"{path}: no column for the {missing}; name it with --column {missing}=NAME; there are "
            f"{', '.join(map(str, header[:20]))}"
        )
    return named


def _row(
    number: int, cells: Mapping[str, object], named: Mapping[str, str], joined: _Originals | None
) -> PairRow:
    def value_of(role: str) -> str:
        value = cells.get(named[role]) if role in named else None
        return "" if value is None else str(value)

    original = _image(cells.get(named["original"])) if "original" in named else None
    called = Path(original.name).stem if original is not None and original.name else ""
    if joined is not None:
        original = joined.find(called or value_of("id")) or (original if original and original.data else None)
    return PairRow(
        id=value_of("id") or str(number),
        original=original,
        original_name=called,
        edited=_image(cells.get(named["edited"])) or RowImage(""),
        **{role: value_of(role) for role in CALLED if role not in ("id", "original", "edited")},
    )


def _image(cell: object) -> RowImage | None:
    """Return the image of a cell: a path, the bytes of a file, or both as in Hugging Face's tables."""
    if isinstance(cell, Mapping):
        data, name = cell.get("bytes"), cell.get("path")
        return RowImage(str(name or ""), data if isinstance(data, bytes) else None) if data or name else None
    if isinstance(cell, bytes):
        return RowImage("", cell)
    return RowImage(str(cell)) if cell not in (None, "") else None


# --- tables: each yields its header as a row of its own, then its rows ------------------------------


def _csv(path: Path) -> Iterator[Mapping[str, object]]:
    with open_regular(path, str(path), None) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        try:
            delimiter = max(",;\t", key=text.readline(LARGEST_LINE).count)
            text.seek(0)
            reader = csv.DictReader(text, delimiter=delimiter)
            yield _header(path, reader.fieldnames or ())
            for number, row in enumerate(reader, start=1):
                if any(row.pop(None, ())):
                    raise InputError(f"{path}: row {number}: more cells than the header has")
                yield row
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not a CSV file in UTF-8 ({error})") from error


def _header(path: Path, names: Sequence[str]) -> dict[str, object]:
    if twice := next((name for name, n in Counter(names).items() if name and n > 1), None):
        raise InputError(f"{path}: column {twice!r} appears twice")
    return dict.fromkeys(names)


def _jsonl(path: Path) -> Iterator[Mapping[str, object]]:
    """The header is that of the first row."""
    with open_regular(path, str(path), None) as file:
        lines = iter(lambda: file.readline(LARGEST_LINE + 1), b"")
        first = True
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise InputError(f"{path}: line {number}: not JSON ({error})") from error
            if not isinstance(row, dict):
                raise InputError(f"{path}: line {number}: expected an object")
            if first:
                yield dict.fromkeys(row)
                first = False
            yield row


def _parquet(
    path: Path, columns: Mapping[str, str], joined: _Originals | None
) -> Iterator[Mapping[str, object]]:
    """Only the columns of a role are read: the size of others is not bounded by the file's."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(f"{path}: needs pyarrow: {install_line('release')}") from None
    from plantain.files.unpacking import unpacks_too_far

    try:
        with open_regular(path, str(path), None) as file, pq.ParquetFile(file) as table:
            header = _header(path, table.schema_arrow.names)
            yield header
            read = list(dict.fromkeys(_columns(path, list(header), columns, joined).values()))
            if too_far := unpacks_too_far(table, frozenset(read)):
                raise InputError(f"{path}: {too_far}")
            for batch in table.iter_batches(_BATCH, columns=read):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
        if isinstance(error, InputError):
            raise
        # The last three: text that is not UTF-8, dates and time zones that do not exist.
        raise InputError(f"{path}: not a readable Parquet file ({error})") from error


def _tree(root: Path, joined: _Originals | None) -> Iterator[PairRow]:
    """Yield every image of Med-Banana's tree. Its folder is the verdict; everything else is unknown."""
    for edit in PublishedTree(root).edits():
        key = edit.key
        yield PairRow(
            id=edit.path.stem,
            original=joined.find(key.image_id) if joined is not None else None,
            original_name=f"{key.dataset}-{key.image_id}",
            edited=RowImage(edit.path.relative_to(root).as_posix(), None, root),
            instruction="",
            finding=key.disease.replace("_", " "),
            modality=key.dataset.replace("-", "_").lower(),
            direction=key.direction.value,
            verdict="failed" if edit.failed else "success",
            dataset=key.dataset,
        )


class _Originals:
    """Images of a folder by name, and by the name of a folder that contains just one, as studies of MIMIC-CXR."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(f"--originals {root}: no such folder")
        self._root = root
        found = [p for p in sorted(root.rglob("*")) if p.suffix.lower() in IMAGES and p.is_file()]
        in_folder = Counter(path.parent.name.lower() for path in found)
        alone = {p.parent.name.lower(): p for p in found if in_folder[p.parent.name.lower()] == 1}
        self._files = alone | {path.stem.lower(): path for path in reversed(found)}
        if not self._files:
            raise InputError(f"--originals {root}: contains no image")

    def find(self, name: str) -> RowImage | None:
        """Return the image of that name; None where there is none."""
        path = self._files.get(name.lower())
        return None if path is None else RowImage(path.relative_to(self._root).as_posix(), None, self._root)
