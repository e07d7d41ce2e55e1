"""CSV as plantain writes it: formulas are defused on writing, and restored on reading."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

_RUNS = re.compile(r"'*(\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")
"""Start of a formula (OWASP, CSV injection), or of a cell that looks defused."""

_HARMLESS = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?%?|inf|nan)|-")


def written_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV text, lines ended by a line feed. Numbers stay numbers; other cells are defused."""
    return "".join(map(csv_line, rows))


def csv_line(row: Sequence[object]) -> str:
    """Return one row of `written_csv`."""
    text = io.StringIO()
    # Python's writer quotes its line terminator's characters; a carriage return must be quoted too.
    csv.writer(text, lineterminator="\r\n").writerow([defused(cell) for cell in row])
    return text.getvalue().removesuffix("\r\n") + "\n"


def read_csv(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield rows of CSV text as they were before they were defused. Raises csv.Error."""
    for row in csv.reader(lines):
        yield [whole(cell) for cell in row]


def defused(cell: object) -> object:
    """Return a cell with an apostrophe before a formula; other cells are unchanged."""
    if not isinstance(cell, str) or _HARMLESS.fullmatch(cell) or not _RUNS.match(cell):
        return cell
    return f"'{cell}"


def whole(cell: str) -> str:
    """Return the inverse of `defused`."""
    return cell[1:] if cell.startswith("'") and _RUNS.match(cell) else cell
