"""`plantain review plan`: the readers, cases and hours that a study needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from plantain.metrics.statistics.reader_power import Components, power

WANTED = 0.8
"""Power that a study should have."""

READERS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
CASES = (25, 50, 75, 100, 150, 200, 300, 400)


@dataclass(frozen=True, slots=True)
class Design:
    """One possible size of a study, with its power.

    Attributes:
        power: probability to find the effect; type_1: probability to find one although none exists.
        hours: reading time of all readers together, both models of a case read one after the other.
    """

    readers: int
    cases: int
    power: float
    type_1: float
    hours: float


@dataclass(frozen=True, slots=True)
class ReaderStudyPlan:
    """A plan of a study.

    Attributes:
        effect: difference between two models that must be found, in the unit of the answers.
        components: variance components of a difference; `source`: their origin, in words.
        seconds: seconds to read one image once.
        asked: the requested design.
        table: designs of other sizes.
    """

    effect: float
    components: Components
    source: str
    seconds: float
    asked: Design
    table: tuple[Design, ...]

    @property
    def smallest(self) -> Design | None:
        """The design in the table with enough power and the fewest hours; None if none has enough power."""
        enough = [design for design in self.table if design.power >= WANTED]
        return min(enough, key=lambda design: (design.hours, design.readers), default=None)

    def as_json(self) -> dict[str, object]:
        return {
            "effect": self.effect,
            "components": asdict(self.components),
            "components_from": self.source,
            "seconds_per_reading": self.seconds,
            **asdict(self.asked),
            "table": [asdict(design) for design in self.table],
            "wanted_power": WANTED,
            "smallest": None if self.smallest is None else asdict(self.smallest),
        }


def plan_study(
    readers: int,
    cases: int,
    effect: float,
    parts: Components,
    *,
    seconds: float = 20.0,
    source: str = "",
) -> ReaderStudyPlan:
    """Compute the power of one design, and of a table of sizes.

    Args:
        readers, cases: total numbers.
        effect: difference between two models, in the unit of the answers.
        parts: variance components of a difference.
        seconds: seconds to read one image once.
        source: origin of the components, in words.
    """

    def design(r: int, c: int) -> Design:
        return Design(r, c, power(effect, r, c, parts), power(0.0, r, c, parts), 2 * r * c * seconds / 3600)

    table = tuple(design(r, c) for r in sorted({*READERS, readers}) for c in sorted({*CASES, cases}))
    return ReaderStudyPlan(effect, parts, source, seconds, design(readers, cases), table)


def by_readers(designs: Sequence[Design]) -> dict[int, dict[int, Design]]:
    """Arrange designs as a table: number of readers -> number of cases -> design."""
    rows: dict[int, dict[int, Design]] = {}
    for design in designs:
        rows.setdefault(design.readers, {})[design.cases] = design
    return rows
