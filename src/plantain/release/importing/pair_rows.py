"""Rows of published edits from a CSV, JSON lines, Parquet, a folder of them, or Med-Banana's tree; read as a stream."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import orjson

from plantain.files.installing import install_line
from plantain.files.opening import check_inside, open_regular
from plantain.records import InputError
from plantain.records.suggestions import fold, suggest
from plantain.release.importing.published import PublishedTree

LARGEST_LINE = 64_000_000

_BATCH = 4
"""Rows of Parquet at once: a dictionary can make every one of them as large as the largest cell."""

ENDINGS = (".csv", ".jsonl", ".parquet")
PICTURES = (".jpg", ".jpeg", ".png")

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
"""What each column may be called; the first that is there counts."""
NEEDED = ("edited", "finding", "modality", "direction")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a row: its bytes, or a file below the table's folder or `root`."""

    name: str
    data: bytes | None = None
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class PairRow:
    """One published edit, as its table has it; "" where nothing is said."""

    id: str
    original: Picture | None
    original_name: str
    edited: Picture
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
    """The folder that files of rows lie in, and the rows.

    Args:
        path: a table, a folder that holds one or shards of one, or Med-Banana's tree.
        columns: role -> column.
        originals: a folder whose pictures are joined by name.

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
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    return path.parent, _table(path, columns, joined)


def _table(path: Path, columns: Mapping[str, str], joined: _Originals | None) -> Iterator[PairRow]:
    if path.suffix == ".parquet":
        return _parquet(path, columns, joined)
    cells = {".csv": _csv, ".jsonl": _jsonl}[path.suffix](path)
    first = next(cells, None)
    if first is None:
        raise InputError(f"{path}: has no rows")
    named = _columns(path, list(first), columns, joined)
    return (_row(number, row, named, joined) for number, row in enumerate(chain([first], cells), start=1))


def _columns(
    path: Path, header: Sequence[str], asked: Mapping[str, str], joined: _Originals | None
) -> dict[str, str]:
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
            f"{path}: no column tells the {missing}; say which does with --column {missing}=NAME; there are "
            f"{', '.join(map(str, header[:20]))}"
        )
    return named


def _row(
    number: int, cells: Mapping[str, object], named: Mapping[str, str], joined: _Originals | None
) -> PairRow:
    def value_of(role: str) -> str:
        value = cells.get(named[role]) if role in named else None
        return "" if value is None else str(value)

    original = _picture(cells.get(named["original"])) if "original" in named else None
    called = Path(original.name).stem if original is not None and original.name else ""
    if joined is not None:
        original = joined.find(called or value_of("id")) or (original if original and original.data else None)
    return PairRow(
        id=value_of("id") or str(number),
        original=original,
        original_name=called,
        edited=_picture(cells.get(named["edited"])) or Picture(""),
        **{role: value_of(role) for role in CALLED if role not in ("id", "original", "edited")},
    )


def _picture(cell: object) -> Picture | None:
    """A path, the bytes of a file, or both as Hugging Face's tables have them."""
    if isinstance(cell, Mapping):
        data, name = cell.get("bytes"), cell.get("path")
        return Picture(str(name or ""), data if isinstance(data, bytes) else None) if data or name else None
    if isinstance(cell, bytes):
        return Picture("", cell)
    return Picture(str(cell)) if cell not in (None, "") else None


def _csv(path: Path) -> Iterator[dict[str, object]]:
    with open_regular(path, str(path), None) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        try:
            parted = max(",;\t", key=text.readline(LARGEST_LINE).count)
            text.seek(0)
            reader = csv.DictReader(text, delimiter=parted)
            with _long_cells():
                header = reader.fieldnames or ()
            if twice := [name for name in header if name and header.count(name) > 1]:
                raise InputError(f"{path}: column {twice[0]!r}: stands twice in the header")
            for number in count(1):
                with _long_cells():
                    row = next(reader, None)
                if row is None:
                    return
                if any(row.pop(None, ())):  # what goes beyond the header
                    raise InputError(f"{path}: row {number}: more cells than the header's {len(header)}")
                yield dict(row)
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not a CSV file in UTF-8 ({error})") from error


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Lets a cell be as long as a line. The limit is one of the whole process: it is never left to another reader."""
    usual = csv.field_size_limit(min(sys.maxsize, LARGEST_LINE))
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _jsonl(path: Path) -> Iterator[dict[str, object]]:
    with open_regular(path, str(path), None) as file:
        number = 0
        while line := file.readline(LARGEST_LINE + 1):
            number += 1
            if not line.strip():
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise InputError(f"{path}: line {number}: not JSON ({error})") from error
            if not isinstance(row, dict):
                raise InputError(f"{path}: line {number}: expected an object")
            yield row


def _parquet(path: Path, columns: Mapping[str, str], joined: _Originals | None) -> Iterator[PairRow]:
    """Only the columns that tell something are read: what others unpack to is not bounded by the file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(f"{path}: needs pyarrow: {install_line('release')}") from None
    from plantain.files.unpacking import unpacks_too_far

    try:
        with open_regular(path, str(path), None) as file, pq.ParquetFile(file) as table:
            header = table.schema_arrow.names
            if not table.metadata.num_rows:
                raise InputError(f"{path}: has no rows")
            named = _columns(path, header, columns, joined)
            told = list(dict.fromkeys(named.values()))
            if twice := [name for name in told if header.count(name) > 1]:
                raise InputError(f"{path}: column {twice[0]!r}: stands twice in the header")
            if too_far := unpacks_too_far(table, frozenset(told)):
                raise InputError(f"{path}: {too_far}")
            number = 0
            for batch in table.iter_batches(_BATCH, columns=told):
                for row in batch.to_pylist():
                    number += 1
                    yield _row(number, row, named, joined)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
        # the last three: text that is not UTF-8, a date that no calendar has, a time zone that is none
        raise InputError(f"{path}: not a readable Parquet file ({error})") from error


def _tree(root: Path, joined: _Originals | None) -> Iterator[PairRow]:
    """Every picture of Med-Banana's tree. Its folder says success or failure, and nothing else is told."""
    for path, (dataset, image, disease, direction), failed in PublishedTree(root).edits():
        name = path.relative_to(root).as_posix()
        yield PairRow(
            id=path.stem,
            original=joined.find(image) if joined is not None else None,
            original_name=f"{dataset}-{image}",
            edited=Picture(name, None, root),
            instruction="",
            finding=disease.replace("_", " "),
            modality=dataset.replace("-", "_").lower(),
            direction=direction.value,
            verdict="failed" if failed else "success",
            dataset=dataset,
        )


class _Originals:
    """Pictures of a folder by name, and by the folder that holds one alone, as MIMIC-CXR's studies are."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(f"--originals {root}: no such folder")
        self._root = root
        self._files: dict[str, Path] = {}
        folders: dict[str, list[Path]] = {}
        for path in sorted(root.rglob("*")):
            if path.suffix.lower() in PICTURES and path.is_file():
                self._files.setdefault(path.stem.lower(), path)
                folders.setdefault(path.parent.name.lower(), []).append(path)
        for name, paths in folders.items():
            if len(paths) == 1:
                self._files.setdefault(name, paths[0])
        if not self._files:
            raise InputError(f"--originals {root}: holds no picture")

    def find(self, name: str) -> Picture | None:
        """The picture of that name; None where there is none."""
        path = self._files.get(name.lower())
        return None if path is None else Picture(path.relative_to(self._root).as_posix(), None, self._root)
