"""The power and hours of a reader study by its numbers of readers and cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plantain.metrics.statistics.reader_power import Components, power

WANTED = 0.8
"""Power that a study should have."""

READERS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
CASES = (25, 50, 75, 100, 150, 200, 300, 400)


@dataclass(frozen=True, slots=True)
class Design:
    """One possible size of a study, with its power.

    Attributes:
        power: probability of detecting the effect; type_1: probability of finding one where none exists.
        hours: reading time of all readers together, both models of a case read one after the other.
    """

    readers: int
    cases: int
    power: float
    type_1: float
    hours: float


def designs(readers: int, cases: int, effect: float, parts: Components, seconds: float) -> list[Design]:
    """Compute the power of the requested design, the first one, and of a table of sizes.

    Args:
        readers, cases: total numbers.
        effect: difference between two models, in the unit of the answers.
        parts: variance components of a difference.
        seconds: seconds to read one image once.
    """

    def design(r: int, c: int) -> Design:
        return Design(r, c, power(effect, r, c, parts), power(0.0, r, c, parts), 2 * r * c * seconds / 3600)

    table = [design(r, c) for r in sorted({*READERS, readers}) for c in sorted({*CASES, cases})]
    return [design(readers, cases), *table]


def smallest(table: Sequence[Design]) -> Design | None:
    """Return the design with enough power and the fewest hours; None if none has enough power."""
    enough = [design for design in table if design.power >= WANTED]
    return min(enough, key=lambda design: (design.hours, design.readers), default=None)
