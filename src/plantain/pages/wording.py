"""Numbers and names as text: a dash without a number, and no control characters that disguise text."""

from __future__ import annotations

from plantain.files.secrets import DISGUISES
from plantain.records import messages

DASH = "–"

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def words(name: str) -> str:
    """Convert an identifier to words: "blending_artefact" becomes "Blending artefact"."""
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def percent(value: float | None, digits: int = 0) -> str:
    """Format a share, 0 to 1, as a percentage ("25 %"); a dash for None."""
    return DASH if value is None else f"{100 * value:.{digits}f} %"


def decimal(value: float | None, digits: int = 2) -> str:
    return DASH if value is None else f"{value:.{digits}f}"


def count(value: int) -> str:
    """Format a count with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f")


def counted(value: int, one: str, more: str = "") -> str:
    """Format a count with its noun: "1 edit", "2 edits"."""
    return messages.counted(value, one, more).replace(",", "\u202f")


def escaped(text: str) -> str:
    r"""Return text with LaTeX's special characters escaped.

    Example:
        >>> escaped("a_b & 5 %")
        'a\\_b \\& 5 \\%'
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def plain(text: str) -> str:
    """Remove control characters and changes of writing direction, which could disguise a text."""
    return DISGUISES.sub("\ufffd", text)
