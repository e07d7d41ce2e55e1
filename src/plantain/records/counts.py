"""Numbers in words ("1 image", "12,000 images"), and places shared out over parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")


def counted(number: object, one: str, more: str = "") -> str:
    """Return a number with its noun.

    Args:
        number: a whole number.
        one: the singular noun, with any words before it.
        more: the same for any other number; default: `one` with an s.

    Example:
        >>> counted(1, "data file"), counted(0, "image"), counted(1234, "study", "studies")
        ('1 data file', '0 images', '1,234 studies')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def shared_out(sizes: Mapping[K, int], most: int) -> dict[K, int]:
    """Share `most` places over parts: one each in turn, until places or tasks run out.

    Example:
        >>> shared_out({"add": 100, "remove": 2}, 10)
        {'add': 8, 'remove': 2}
    """
    places = dict.fromkeys(sizes, 0)
    left = min(most, sum(sizes.values()))
    while left:
        for part in [part for part in sizes if places[part] < sizes[part]][:left]:
            places[part] += 1
            left -= 1
    return places
