"""Results on stdout: JSON, and tables that fit the terminal without breaking numbers or names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO, cast

import orjson
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table

from plantain.files.secrets import RedactedStream, harmless

FOLDED = 24
"""Minimum width of a column whose long names may wrap."""


def print_json(document: object) -> None:
    """Print a result as indented JSON."""
    print(orjson.dumps(document, default=str, option=orjson.OPT_INDENT_2).decode())


def right(*headings: str) -> Iterator[Column]:
    """Yield right-aligned table columns, for numbers."""
    return (Column(heading, justify="right") for heading in headings)


def folded(*headings: str) -> Iterator[Column]:
    """Yield table columns for long names, which may wrap."""
    return (Column(heading, overflow="fold") for heading in headings)


class TerminalConsole(Console):
    """A console that prints control characters and markup in texts instead of executing them."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        ours = getattr(stream, "redacts", stream)
        super().__init__(file=cast(TextIO, RedactedStream(ours, commands=True)), markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else harmless(text), style, control)


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal, or as its longest words need (then use `less -S`).

    All tables have one line below their heads and no frame. Columns with overflow "fold" may break words, down to
    `FOLDED` characters.
    """
    table.box, table.pad_edge, table.title_justify = SIMPLE_HEAD, False, "left"
    console = TerminalConsole()
    cells = [[str(cell) for cell in (column.header, *column.cells)] for column in table.columns]
    natural = [_longest(line for cell in own for line in cell.splitlines()) for own in cells]
    least = [_longest(word for cell in own for word in cell.split()) for own in cells]
    for place, column in enumerate(table.columns):
        natural[place] = min(natural[place], column.max_width or natural[place])
        if column.no_wrap:
            least[place] = natural[place]
        elif column.overflow == "fold":
            least[place] = min(least[place], FOLDED)
    _, right, _, left = table.padding
    frame = len(cells) + 1 + (len(cells) - 1) * (left + right)
    console.width = max(console.width, frame + sum(least))
    if frame + sum(natural) > console.width:
        # Rich would narrow the widest columns first, even below their longest word.
        for column, width in zip(table.columns, _shared(least, natural, console.width - frame), strict=True):
            column.width = width
    console.print(table)


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _shared(least: Sequence[int], natural: Sequence[int], total: int) -> list[int]:
    """Return column widths of this total: the minimum of each, plus equal shares of the rest."""
    widths, spare = list(least), total - sum(least)
    needs = [max(0, wanted - given) for wanted, given in zip(natural, least, strict=True)]
    for done, place in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        more = min(needs[place], spare // (len(needs) - done))
        widths[place] += more
        spare -= more
    return widths
