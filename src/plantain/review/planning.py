"""`plantain review plan`: the readers, cases and hours that a study needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from plantain.metrics.statistics.reader_power import Components, power
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.records.messages import counted

TEMPLATES = Path(__file__).parent / "templates"
WANTED = 0.8
"""Power that a study should have."""

READERS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
CASES = (25, 50, 75, 100, 150, 200, 300, 400)
DRAWN = (50, 100, 200, 400)
"""Cases of the lines in the figure."""


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


def write_plan(plan: ReaderStudyPlan, path: Path) -> Path:
    """Write the plan as a page; return its path. Raise InputError if it cannot be written."""
    environment = page_environment(TEMPLATES, "")
    page = environment.get_template("plan.html.j2").render(
        plan=plan, wanted=WANTED, rows=by_readers(plan.table), figure=_power_figure(plan)
    )
    write_page(html_target(path), page)
    return path


def _power_figure(plan: ReaderStudyPlan) -> str:
    """Return power against readers, one line for each number of cases, as SVG."""
    from matplotlib.figure import Figure

    from plantain.pages.drawing import INK, MUTED, SERIES, legend, percent_axis, svg

    rows = by_readers(plan.table)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        percent_axis(axes, "y")
        axes.axhline(WANTED, color=MUTED, lw=0.8, ls="--")
        for colour, cases in zip(SERIES, sorted({*DRAWN, plan.asked.cases}), strict=False):
            width = 2.2 if cases == plan.asked.cases else 1.2
            powers = [rows[readers][cases].power for readers in rows]
            axes.plot(list(rows), powers, color=colour, lw=width, label=counted(cases, "case"))
        axes.plot(plan.asked.readers, plan.asked.power, "o", color=INK, ms=6)
        axes.set_xticks(list(rows))
        axes.set_xlabel("readers")
        axes.set_ylabel("power")
        legend(axes, 4)

    return svg("power", 7.2, 3.8, draw)
