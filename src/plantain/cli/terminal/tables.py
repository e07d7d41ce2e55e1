"""Tables on a terminal: fitted to its width, but never so that a number or a name is broken."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

FOLDED = 24
"""Characters that a column of long names is given at least; these may go over several lines."""


def print_table(table: Table) -> None:
    """Prints a table as wide as the terminal, or as wide as its longest words ask: then `less -S` scrolls it.

    Columns with overflow "fold" are broken within words, down to `FOLDED` characters.
    """
    console = Console()
    least = 1
    for column in table.columns:
        cells = (column.header, *column.cells)
        longest = max((len(word) for cell in cells for word in str(cell).split()), default=0)
        least += 3 + (min(longest, FOLDED) if column.overflow == "fold" else longest)
    console.width = max(console.width, least)
    console.print(table)
