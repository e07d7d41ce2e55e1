"""How a number of things is said: "1 image", "2 images", "12,000 images"."""

from __future__ import annotations


def counted(number: object, one: str, more: str = "") -> str:
    """A number with its noun.

    Args:
        number: a whole number, also where it stands in a document for `--json`.
        one: the noun, and what stands before it, for a single thing.
        more: the same for any other number; default: `one` with an s.

    Example:
        >>> counted(1, "data file"), counted(0, "image"), counted(1234, "study", "studies")
        ('1 data file', '0 images', '1,234 studies')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"
