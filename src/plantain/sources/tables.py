"""Tables as datasets publish them, read by header, never by position: .csv, .csv.gz and the first sheet of an .xlsx.

Columns are parted by commas, or by what the header is parted by (";" as spreadsheets of many countries save, tabs).
A published table may be large (MIMIC-CXR has 377,000 rows), so rows are streamed; it may be damaged, so every fault is
one line that names the file and the row.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from plantain.files.csv_form import read_csv
from plantain.files.opening import open_regular, read_regular
from plantain.pixels.decode import one_line
from plantain.records import InputError

Row = dict[str, str]

MAX_TABLE_BYTES = 1 << 30
"""Most text that one table may unpack to."""

MAX_SHEET_BYTES = 128 * 1024 * 1024
"""Most that the parts of an .xlsx may unpack to; the sheet of ODIR-5K takes 4 MB."""

MAX_COLUMNS = 4096
MAX_LINE = 4 << 20

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_FAULTS = (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError)


def read_table(path: Path, needed: Sequence[str] = ()) -> Iterator[Row]:
    """Streams a table's rows as {column: text}, cells stripped; rows without any text are skipped.

    Args:
        path: *.csv, *.csv.gz or *.xlsx.
        needed: columns that must exist.

    Raises:
        InputError: it cannot be read, a column is missing or doubled, or a row has more cells than the header.
    """
    yield from open_table(path, needed)[1]


def open_table(path: Path, needed: Sequence[str] = ()) -> tuple[tuple[str, ...], Iterator[Row]]:
    """A table's columns, but those without a name, and its rows as `read_table` streams them; raises as it does."""
    numbered = enumerate(_sheet_rows(path) if path.suffix.lower() == ".xlsx" else _csv_rows(path), 1)
    first = next((cells for _, cells in numbered if any(cells)), None)
    if first is None:
        raise InputError(f"{path}: is empty; a header row is needed")
    header = _check_header(path, first, needed)
    return tuple(filter(None, header)), _rows_under(path, header, numbered)


def _rows_under(path: Path, header: list[str], numbered: Iterator[tuple[int, list[str]]]) -> Iterator[Row]:
    for number, cells in numbered:
        if any(cells[len(header) :]):
            raise InputError(f"{path}: row {number}: {len(cells)} cells under {len(header)} columns")
        if any(cells):
            padded = [*cells, *[""] * len(header)]
            yield {name: cell for name, cell in zip(header, padded, strict=False) if name}


def has_columns(path: Path, needed: Sequence[str]) -> bool:
    """Whether a file is a readable table with these columns."""
    try:
        next(read_table(path, needed), None)
    except InputError:
        return False
    return True


def _check_header(path: Path, cells: list[str], needed: Sequence[str]) -> list[str]:
    if len(cells) > MAX_COLUMNS:
        raise InputError(f"{path}: {len(cells)} columns; at most {MAX_COLUMNS} are read")
    doubled = sorted({name for name in cells if name and cells.count(name) > 1})
    if doubled:
        raise InputError(f"{path}: column {doubled[0]!r}: stands twice in the header")
    missing = [name for name in needed if name not in cells]
    if missing:
        found = one_line(", ".join(cells[:20]))
        raise InputError(f"{path}: column {missing[0]!r}: is missing; the header says {found}")
    return cells


def _csv_rows(path: Path) -> Iterator[list[str]]:
    number = 0
    try:
        with open_regular(path, str(path), most=None) as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            raw: io.BufferedIOBase = gzip.GzipFile(fileobj=file) if packed else file
            bounded = io.BufferedReader(_Bounded(raw, path))
            # Lone surrogates cannot come out of UTF-8; a byte order mark is what Excel writes first.
            with io.TextIOWrapper(bounded, encoding="utf-8-sig", newline="") as text:
                first = text.readline(MAX_LINE)
                parted = max(",;\t", key=first.count)
                lines = itertools.chain([first], iter(lambda: text.readline(MAX_LINE), ""))
                for cells in read_csv(map(_short_line, lines), parted):
                    number += 1
                    yield [cell.strip() for cell in cells]
    except _FAULTS as error:
        encoded = isinstance(error, UnicodeDecodeError)
        why = "not UTF-8 text; save it as CSV UTF-8" if encoded else str(error) or "cut short"
        raise InputError(
            f"{path}: row {number + 1}: cannot be read ({' '.join(why.split())[:120]})"
        ) from error


def _short_line(line: str) -> str:
    """The line; one without an end in sight would have to be held in memory whole."""
    if len(line) >= MAX_LINE:
        raise csv.Error(f"a line of more than {MAX_LINE} characters")
    return line


class _Bounded(io.RawIOBase):
    """A stream that stops a table which unpacks to more than any real one."""

    def __init__(self, raw: io.BufferedIOBase, path: Path) -> None:
        self._raw, self._path, self._left = raw, path, MAX_TABLE_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        assert isinstance(buffer, memoryview)
        data = self._raw.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise InputError(f"{self._path}: more than {MAX_TABLE_BYTES >> 20} MB of text")
        buffer[: len(data)] = data
        return len(data)


def _sheet_rows(path: Path) -> Iterator[list[str]]:
    data = read_regular(path, str(path))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            names = sorted(n for n in book.namelist() if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", n))
            if not names:
                raise InputError(f"{path}: no worksheet in it")
            parts = [name for name in ("xl/sharedStrings.xml", names[0]) if name in book.namelist()]
            if sum(book.getinfo(name).file_size for name in parts) > MAX_SHEET_BYTES:
                raise InputError(f"{path}: more than {MAX_SHEET_BYTES >> 20} MB of cells")
            strings: list[str] = []
            if "xl/sharedStrings.xml" in parts:
                tree = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
                strings = [_text(entry) for entry in tree.iter(f"{_SHEET}si")]
            sheet = ElementTree.fromstring(book.read(names[0]))
    except (zipfile.BadZipFile, ElementTree.ParseError, KeyError, *_FAULTS) as error:
        raise InputError(f"{path}: is no .xlsx that can be read ({error})") from error
    except (RuntimeError, NotImplementedError, ValueError) as error:
        raise InputError(f"{path}: is encrypted or damaged ({error})") from error
    for row in sheet.iter(f"{_SHEET}row"):
        yield _sheet_row(path, row, strings)


def _sheet_row(path: Path, row: ElementTree.Element, strings: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row.iter(f"{_SHEET}c"):
        place = re.fullmatch(r"([A-Z]{1,3})[0-9]*", cell.get("r", ""))
        at = _column(place[1]) if place else len(cells)
        if at >= MAX_COLUMNS:
            raise InputError(f"{path}: cell {cell.get('r')}: at most {MAX_COLUMNS} columns are read")
        cells.extend([""] * (at + 1 - len(cells)))
        value = cell.findtext(f"{_SHEET}v", "")
        if cell.get("t") == "s":
            if not (value.isascii() and value.isdigit() and int(value[:9]) < len(strings)):
                raise InputError(
                    f"{path}: cell {cell.get('r')}: refers to text {value!r}, which is not there"
                )
            value = strings[int(value)]
        elif cell.get("t") == "inlineStr":
            value = _text(cell)
        elif re.fullmatch(r"-?[0-9]+\.0+", value):
            value = value.partition(".")[0]
        cells[at] = value.strip()
    return cells


def _text(node: ElementTree.Element) -> str:
    """All runs of a rich text, without the phonetic guides that East Asian sheets carry beside it."""
    guides = {id(t) for guide in node.iter(f"{_SHEET}rPh") for t in guide.iter(f"{_SHEET}t")}
    return "".join(t.text or "" for t in node.iter(f"{_SHEET}t") if id(t) not in guides)


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1
