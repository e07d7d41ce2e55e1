"""`plantain review plan`: how many readers and cases show a difference, and what they cost in hours."""

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
    """One size of a study.

    Attributes:
        groups: 1: everybody reads every case; more: a split-plot, each group its own cases.
        power: chance that the effect is found; type_1: that one is found where there is none.
        hours: of all readers together, both models of a case read one after the other.
    """

    readers: int
    cases: int
    groups: int
    power: float
    type_1: float
    hours: float


@dataclass(frozen=True, slots=True)
class ReaderStudyPlan:
    """What was asked, and the sizes around it."""

    effect: float
    components: Components
    source: str
    seconds: float
    asked: Design
    split: tuple[Design, ...]
    table: tuple[Design, ...]

    @property
    def smallest(self) -> Design | None:
        """The design of the table with power enough that costs the fewest hours; None if there is none."""
        enough = [design for design in self.table if design.power >= WANTED]
        return min(enough, key=lambda design: (design.hours, design.readers), default=None)


def plan_study(
    readers: int, cases: int, effect: float, parts: Components, *, groups: int = 1, seconds: float = 20.0,
    source: str = "",
) -> ReaderStudyPlan:  # fmt: skip
    """The power of one design, of split-plots with as many readings, and of a table of sizes.

    Args:
        readers, cases: in all.
        effect: the difference between two models, in the unit of the answers.
        parts: variance components of a difference.
        seconds: that one reading of one picture takes.
        source: where the components come from, in words.

    Raises:
        ValueError: a design that cannot be read.
    """

    def design(r: int, c: int, g: int = 1) -> Design:
        found = power(effect, r, c, parts, groups=g)
        return Design(r, c, g, found, power(0.0, r, c, parts, groups=g), 2 * r * c * seconds / g / 3600)

    split = tuple(
        design(readers, g * cases, g)
        for g in range(2, readers // 2 + 1)
        if readers % g == 0 and readers // g >= 2
    )
    table = tuple(design(r, c) for r in sorted({*READERS, readers}) for c in sorted({*CASES, cases}))
    return ReaderStudyPlan(effect, parts, source, seconds, design(readers, cases, groups), split, table)


def plan_json(plan: ReaderStudyPlan) -> dict[str, object]:
    """Everything as JSON."""
    return {
        "effect": plan.effect,
        "components": asdict(plan.components),
        "components_from": plan.source,
        "seconds_per_reading": plan.seconds,
        **asdict(plan.asked),
        "split_plot": [asdict(design) for design in plan.split],
        "table": [asdict(design) for design in plan.table],
        "wanted_power": WANTED,
        "smallest": None if plan.smallest is None else asdict(plan.smallest),
    }


def by_readers(designs: Sequence[Design]) -> dict[int, dict[int, Design]]:
    """The table as rows of readers and columns of cases."""
    rows: dict[int, dict[int, Design]] = {}
    for design in designs:
        rows.setdefault(design.readers, {})[design.cases] = design
    return rows
