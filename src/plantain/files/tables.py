"""Tables of users and datasets, read by header (CSV, .xlsx, JSON lines), and CSV as plantain writes it.

Ingest, import, benchmarks and reader studies read tables through `read_table` alone. A published table may have a
million rows, so rows are streamed. A row that cannot be read has a `fault` and does not end the table. In CSV that
plantain writes, formulas are defused; `read_csv` restores them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from plantain.files.installed import install_line
from plantain.files.opening import open_regular, read_regular
from plantain.records import InputError

MAX_TABLE_BYTES = 1 << 30
"""Most text that a packed table may unpack to."""

MAX_SHEET_BYTES = 128 << 20
"""Most that the parts of a workbook may unpack to; the sheet of ODIR-5K takes 4 MB."""

MAX_LINE = 64 << 20
"""Characters of a line at most; a cell may contain an image as base64."""

MAX_COLUMNS = 4096

DELIMITERS = (",", ";", "\t")
"""The one that occurs most in the header, outside of quotes, separates cells, unless a first line `sep=X` names one."""

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # starts like UTF-16
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings that a table's first bytes name; any other is GB2312 if it can be that alone, UTF-8, or `_WINDOWS`."""

_WINDOWS = "cp1252"
"""Encoding of bytes that are not valid UTF-8: Latin-1 with the quotes and dashes of Windows (WHATWG Encoding, 4.2)."""

_CHINESE = re.compile(rb"(?i)[\x80-\xff]{4}|(?<![a-z\x80-\xff])[\x80-\xff]{2}(?![a-z])")
"""Several characters of GB2312, or one alone. Accents of Windows are such pairs of bytes only in words like "Größe"."""


def _windows(error: UnicodeError) -> tuple[str, int]:
    """Return bytes that are not UTF-8 as `_WINDOWS`, or the control character that only WHATWG's index defines."""
    if not isinstance(error, UnicodeDecodeError) or error.encoding not in ("utf-8", "charmap"):
        raise error
    stray = error.object[error.start : error.end]
    return (chr(stray[0]) if error.encoding == "charmap" else stray.decode(_WINDOWS, _WINDOWS)), error.end


codecs.register_error(_WINDOWS, _windows)

_END = "\0"
"""A last line, which no text contains: a cell that ends with it has a quote that is never closed."""

_UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")
"""Pandas' name of a column without a name, such as an index that it wrote."""

_EMPTY = frozenset({"nan", "na", "n/a", "<na>", "null", "none"})
_EMPTY |= {"#n/a", "#ref!", "#value!", "#div/0!", "#name?", "#num!", "#null!"}  # of spreadsheets
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_GZIP = b"\x1f\x8b"
_DAMAGE = (OSError, EOFError, zlib.error, csv.Error, UnicodeError)
_BAD_SHEET = (
    *(zipfile.BadZipFile, OSError, EOFError, zlib.error, SyntaxError, RuntimeError, NotImplementedError),
    *(ValueError, TypeError, KeyError, IndexError, AttributeError),
)
"""Errors of openpyxl for a damaged, encrypted or foreign workbook."""

_FORMULA = re.compile(
    r'<c (?![^>]*\bt="str")[^>]*\br="([A-Z]+(\d+))"[^>]*>\s*'
    r"<f\b[^>]*(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>"
)
"""A cell whose formula has no value: openpyxl computes none. Empty text (`t="str"`) is a value."""
_MERGED = re.compile(r'<mergeCell ref="(([A-Z]+)(\d+):([A-Z]+)(\d+))"')

_ESCAPED = re.compile(r"_x(000[AD]|005F(?=_x[0-9A-F]{4}_))_", re.IGNORECASE)
"""End of a line, or the underscore of such a text (ECMA-376 Part 1, 22.9.2.19); tile_x0010_y0020.png is a name."""

_STRICT = b"http://purl.oclc.org/ooxml/spreadsheetml/main"
"""Namespace of Strict Open XML (ISO/IEC 29500-1), which openpyxl does not read."""

csv.field_size_limit(MAX_LINE)

_Numbered = tuple[int, list[str], str]
"""A row's line, its cells and its fault."""


class TableRow(NamedTuple):
    """One row: its line (of a workbook its row), its cells by column as stripped text, and why it cannot be read."""

    line: int
    cells: dict[str, str]
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is being read.

    Attributes:
        path: path of the file.
        columns: names in the header, without unnamed columns, such as an index that a program wrote.
        rows: rows with any text; can be iterated once.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Iterator[TableRow]

    def require(self, *columns: str) -> Table:
        """Check that the table has these columns, and return it. Raise InputError if one is missing."""
        if missing := [name for name in columns if name not in self.columns]:
            which = f"columns {', '.join(missing)}: are" if missing[1:] else f"column {missing[0]!r}: is"
            has = ", ".join(map(repr, self.columns[:20]))
            raise InputError(f"{self.path}: {which} missing; the header has {has}")
        return self

    def whole_rows(self) -> Iterator[TableRow]:
        """Yield the rows. Raise InputError at the first one with a fault."""
        for row in self.rows:
            if row.fault:
                raise InputError(f"{self.path}: line {row.line}: {row.fault}")
            yield row


def read_table(path: Path, known: Callable[[str], bool] = lambda name: False) -> Table:
    """Open a table: .xlsx (first visible sheet), .jsonl, or text with commas, semicolons or tabs, gzipped or not.

    JSON values other than strings become JSON text in cells; null and NaN become "".
    A title above the header is skipped, unless it is `known` as the name of a column.

    Raises:
        InputError: the file cannot be read or is empty, a column occurs twice; or, while rows are read, the rest of it
            is damaged.
    """
    name = path.name.lower()
    if name.endswith((".jsonl", ".ndjson")):
        return _json_table(path)
    numbered = _sheet_rows(path) if name.endswith(".xlsx") else _text_rows(path)
    rows: Iterator[_Numbered] = (row for row in numbered if any(row[1]))
    line, header, fault = next(rows, (0, [], ""))
    padded = len(header) > 1 or name.endswith(".xlsx")
    if padded and any(header[:1]) and not any(header[1:]):  # a title, if a header of several names follows
        titled = next(rows, (0, [], ""))
        if sum(map(bool, titled[1])) > 2 and not known(header[0]):
            line, header, fault = titled
        else:
            rows = chain([titled], rows)
    if not header or fault:
        why = f"line {line}: {fault}" if fault else "is empty; a header row is needed"
        raise InputError(f"{path}: {why}")
    header = ["" if _UNNAMED.fullmatch(name) else name for name in header]
    return Table(path, _check_header(path, header), _rows_under(header, rows))


def stated_cell(cell: str) -> str:
    """Clean a cell's text: "NaN", "null", "#REF!" and the like become ""; "3.0", as pandas writes it, becomes "3"."""
    return "" if cell.casefold() in _EMPTY else re.sub(r"\A(\d+)\.0\Z", r"\1", cell)


def has_columns(path: Path, *columns: str) -> bool:
    """Return True if a file is a readable table with these columns."""
    try:
        read_table(path).require(*columns)
    except InputError:
        return False
    return True


def _check_header(path: Path, cells: list[str]) -> tuple[str, ...]:
    if len(cells) > MAX_COLUMNS:
        raise InputError(f"{path}: {len(cells)} columns; at most {MAX_COLUMNS} are read")
    names = tuple(filter(None, cells))
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"{path}: column {twice!r}: occurs twice in the header")
    return names


def _rows_under(header: list[str], numbered: Iterator[_Numbered]) -> Iterator[TableRow]:
    for line, cells, fault in numbered:
        if not any(cells):
            continue
        if any(cells[len(header) :]):
            fault = fault or f"{len(cells)} cells under {len(header)} columns"
        padded = chain(cells, [""] * (len(header) - len(cells)))
        yield TableRow(line, {name: cell for name, cell in zip(header, padded, strict=False) if name}, fault)


def _text_rows(path: Path) -> Iterator[_Numbered]:
    line = 0
    try:
        with open_regular(path, str(path), most=None) as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            data = gzip.GzipFile(fileobj=file) if packed else file
            encoding = _encoding(path, data, packed=packed)
            data.seek(0)
            with io.TextIOWrapper(data, encoding, _WINDOWS, newline="") as text:
                lines, before = _lines(text), 0
                first = ""
                for first in lines:
                    before += 1
                    if first.strip():
                        break
                named = _SEPARATOR.fullmatch(first)
                outside = re.sub(r'"[^"]*("|$)', "", first)
                delimiter = named[1] if named else max(DELIMITERS, key=outside.count)
                rest = chain([] if named else [first], lines, [_END])
                reader = csv.reader(rest, delimiter=delimiter)
                before -= not named
                for cells in reader:
                    if cells == [_END]:
                        return
                    cut = bool(cells) and cells[-1].endswith(_END)
                    line = line + 1 if cut else before + reader.line_num
                    fault = (
                        "unexpected end of data: a quote is opened in this row and never closed"
                        if cut
                        else ""
                    )
                    yield line, [whole(cell).strip() for cell in cells], fault
    except _DAMAGE as error:
        why = " ".join(str(error).split())[:120] or "cut short"
        raise InputError(f"{path}: line {line + 1}: cannot be read ({why})") from error


def _encoding(path: Path, file: gzip.GzipFile | io.BufferedReader, *, packed: bool) -> str:
    """Return the encoding of a text. Raise InputError if it is not text, or unpacks to too much."""
    read = stray = chinese = 0
    fitting = {name: codecs.getincrementaldecoder(name)() for name in ("utf-8", "gb2312")}
    block = b"\n"
    while block:
        block = file.read(1 << 20)
        if not read:
            for mark, named in BYTE_ORDER_MARKS.items():
                if block.startswith(mark):
                    return named
        if b"\0" in block:
            raise InputError(f"{path}: no text; expected .csv, .tsv, .xlsx or .jsonl")
        read += len(block)
        if packed and read > MAX_TABLE_BYTES:
            raise InputError(f"{path}: more than {MAX_TABLE_BYTES >> 20} MB of text")
        for name, decoder in list(fitting.items()):
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError:
                del fitting[name]
        if "utf-8" not in fitting:  # count bytes that are not UTF-8 against characters that are
            text = block.decode("utf-8", "replace")
            chinese += _CHINESE.search(block) is not None
            stray += 2 * text.count("\ufffd") - (len(text) - len(text.encode("ascii", "ignore")))
    if chinese and [*fitting] == ["gb2312"]:
        return "gb18030"  # the superset has rare characters
    return _WINDOWS if stray > 0 else "utf-8"


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise csv.Error(f"a line of more than {MAX_LINE} characters")
        yield line


def _sheet_rows(path: Path) -> Iterator[_Numbered]:
    try:
        import openpyxl
    except ImportError:
        raise InputError(f"{path}: needs openpyxl: {install_line('tables')}") from None
    data = io.BytesIO(read_regular(path, str(path)))
    try:
        with zipfile.ZipFile(data) as parts:
            if sum(p.file_size for p in parts.infolist() if p.filename.endswith(".xml")) > MAX_SHEET_BYTES:
                raise InputError(f"{path}: more than {MAX_SHEET_BYTES >> 20} MB of cells")
            if _STRICT in parts.read("xl/workbook.xml"):
                raise InputError(f"{path}: is Strict Open XML; save it as a plain Excel workbook (.xlsx)")
        book = openpyxl.load_workbook(data, read_only=True, data_only=True)
        sheets = book.worksheets
        sheet = next((one for one in sheets if one.sheet_state == "visible"), sheets[0])
        sheet.reset_dimensions()  # some programs state a range that is too small
        with zipfile.ZipFile(data) as parts:
            faults = sorted(_sheet_faults(parts.read(sheet._worksheet_path)), reverse=True)
        for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
            while faults and faults[-1][1] < number:
                faults.pop()
            fault = faults[-1][2] if faults and faults[-1][0] <= number else ""
            yield number, [_sheet_text(value) for value in values], fault
    except InputError:
        raise
    except _BAD_SHEET as error:
        why = " ".join(str(error).split())[:120]
        raise InputError(f"{path}: is not a readable .xlsx file ({why})") from error


def _sheet_faults(sheet: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield first and last row of cells without a value of their own, and which ones they are."""
    text = re.sub(r"<(/?)\w+:", r"<\1", sheet.decode(errors="replace"))  # without prefixes
    for cell, row in _FORMULA.findall(text):
        yield (
            int(row),
            int(row),
            f"cell {cell}: a formula without a value; save the file in a spreadsheet program",
        )
    for cells, column, first, last_column, last in _MERGED.findall(text):
        # The upper or left one of them has the value.
        yield int(first) + (column == last_column), int(last), f"cells {cells} are merged: fill in each"


def _sheet_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).strip()


def _json_table(path: Path) -> Table:
    """Return rows with the fields of all rows as columns, for which the file is read twice."""
    fields: dict[str, None] = {}
    fault = "has no rows"
    for row in _json_rows(path):
        fields |= dict.fromkeys(row.cells)
        if row.fault and fault == "has no rows":
            fault = f"line {row.line}: {row.fault}"
    if not fields:
        raise InputError(f"{path}: {fault}")
    columns = _check_header(path, list(fields))
    empty = dict.fromkeys(columns, "")
    return Table(path, columns, (row._replace(cells=empty | row.cells) for row in _json_rows(path)))


def _json_rows(path: Path) -> Iterator[TableRow]:
    with open_regular(path, str(path), most=None) as file:
        number = 0
        while data := file.readline(MAX_LINE):
            number += 1
            if len(data) == MAX_LINE:
                raise InputError(f"{path}: line {number}: more than {MAX_LINE} bytes")
            try:
                line = data.decode("utf-8-sig")
            except UnicodeDecodeError:
                line = data.decode(_WINDOWS, _WINDOWS)
            if line.strip():
                yield _json_row(number, line)


def _json_row(number: int, line: str) -> TableRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return TableRow(number, {}, f"not JSON ({str(error)[:120]})")
    if not isinstance(row, dict):
        return TableRow(number, {}, "not a JSON object")
    return TableRow(number, {name: _json_text(value) for name, value in row.items()})


def _json_text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_RUNS = re.compile(r"'*(\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")
"""Start of a formula (OWASP, CSV injection), or of a cell that looks defused."""

_HARMLESS = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?%?|inf|nan)|-")


def written_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV text, each row ending in a line feed.

    Text that a spreadsheet would run as a formula gets an apostrophe in front; `read_csv` removes it.
    """
    return "".join(map(csv_line, rows))


def csv_line(row: Sequence[object]) -> str:
    """Return one row as a line of CSV, in the form of `written_csv`."""
    text = io.StringIO()
    # Python's writer quotes its line terminator's characters; a carriage return must be quoted too.
    csv.writer(text, lineterminator="\r\n").writerow([defused(cell) for cell in row])
    return text.getvalue().removesuffix("\r\n") + "\n"


def read_csv(lines: Iterable[str]) -> Iterator[list[str]]:
    """Parse lines of CSV that plantain wrote, with cells as they were before `defused`. Raise csv.Error."""
    for row in csv.reader(lines):
        yield [whole(cell) for cell in row]


def defused(cell: object) -> object:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula; any other cell is unchanged."""
    if not isinstance(cell, str) or _HARMLESS.fullmatch(cell) or not _RUNS.match(cell):
        return cell
    return f"'{cell}"


def whole(cell: str) -> str:
    """Remove the apostrophe that `defused` put before a formula."""
    return cell[1:] if cell.startswith("'") and _RUNS.match(cell) else cell
