"""How pages word numbers and names: a dash where there is no number, and no text that disguises itself."""

from __future__ import annotations

from plantain.records import counts

DASH = "–"


def words(name: str) -> str:
    """An identifier as words: "blending_artefact" becomes "Blending artefact"."""
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def percent(value: float | None, digits: int = 0) -> str:
    """A share as a percentage; a dash where there is none, never 0."""
    return DASH if value is None else f"{100 * value:.{digits}f} %"


def decimal(value: float | None, digits: int = 2) -> str:
    return DASH if value is None else f"{value:.{digits}f}"


def count(value: int) -> str:
    """A count with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f")


def counted(value: int, one: str, more: str = "") -> str:
    """A count with its noun: "1 edit", "2 edits"; the same words as in a terminal."""
    return counts.counted(value, one, more).replace(",", "\u202f")


def plain(text: str) -> str:
    """Text of a model or a source without control and direction-changing characters, which could disguise it."""
    return "".join(c if c in "\n\t" or not _disguises(c) else "\ufffd" for c in text)


def _disguises(character: str) -> bool:
    code = ord(character)
    return (
        code < 32
        or 0x7F <= code <= 0x9F
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
        or 0xD800 <= code <= 0xDFFF
    )
