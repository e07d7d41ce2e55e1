"""Text of the code's as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """One cell of a table: on one line, with what Markdown would take for markup left as it is."""
    line = " ".join(text.split())
    parts = re.split(r"(`[^`]*`)", line)
    plain = [part if part.startswith("`") else re.sub(r"([*<\[])", r"\\\1", part) for part in parts]
    return "".join(plain).replace("|", "\\|")


def code(text: str) -> str:
    """A word in code style, "" for none."""
    return f"`{text}`" if text else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n"


def paragraphs(text: str) -> str:
    """Paragraphs of a docstring, each on lines of their own."""
    return "\n\n".join(cell(part) for part in text.split("\n\n") if part.strip())
