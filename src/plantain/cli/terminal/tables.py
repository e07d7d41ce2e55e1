"""Results on stdout: JSON, and tables fitted to the terminal in which no number or name is broken."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO, cast

import orjson
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from plantain.files.secrets import RedactedStream, harmless

FOLDED = 24
"""Characters that a column of long names is given at least; these may go over several lines."""


def print_json(document: object) -> None:
    """Print a result as JSON, indented."""
    print(orjson.dumps(document, default=str, option=orjson.OPT_INDENT_2).decode())


class TerminalConsole(Console):
    """A console whose texts, whoever wrote them, are shown and never done."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        ours = getattr(stream, "redacts", stream)
        super().__init__(file=cast(TextIO, RedactedStream(ours, commands=True)))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else harmless(text), style, control)


def print_table(table: Table) -> None:
    """Prints a table as wide as the terminal, or as wide as its longest words ask: then `less -S` scrolls it.

    Columns with overflow "fold" are broken within words, down to `FOLDED` characters.
    """
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
    frame = 3 * len(cells) + 1
    console.width = max(console.width, frame + sum(least))
    if frame + sum(natural) > console.width:
        # Rich would narrow the widest columns first, whatever their words ask.
        for column, width in zip(table.columns, _shared(least, natural, console.width - frame), strict=True):
            column.width = width
    console.print(table)


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _shared(least: Sequence[int], natural: Sequence[int], room: int) -> list[int]:
    """Widths of columns that have the room together: what each asks at least, then equal parts of the rest."""
    widths, spare = list(least), room - sum(least)
    needs = [max(0, wanted - given) for wanted, given in zip(natural, least, strict=True)]
    for done, place in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        more = min(needs[place], spare // (len(needs) - done))
        widths[place] += more
        spare -= more
    return widths
