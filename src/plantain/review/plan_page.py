"""The plan of a study as a page: a table, and a figure of power by readers and cases."""

from __future__ import annotations

from pathlib import Path

from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.records.counts import counted
from plantain.review.planning import WANTED, ReaderStudyPlan, by_readers

TEMPLATES = Path(__file__).parent / "templates"

SHOWN = (50, 100, 200, 400)


def write_plan(plan: ReaderStudyPlan, path: Path) -> Path:
    """Writes the page; returns its path. Raises InputError where it cannot be written."""
    environment = page_environment(TEMPLATES, "")
    page = environment.get_template("plan.html.j2").render(
        plan=plan, wanted=WANTED, rows=by_readers(plan.table), figure=power_figure(plan)
    )
    write_page(html_target(path), page)
    return path


def power_figure(plan: ReaderStudyPlan) -> str:
    """Power against readers, one line for each number of cases, as SVG."""
    from matplotlib.figure import Figure

    from plantain.pages.drawing import INK, MUTED, SERIES, legend, percent_axis, svg

    rows = by_readers(plan.table)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        percent_axis(axes, "y")
        axes.axhline(WANTED, color=MUTED, lw=0.8, ls="--")
        for colour, cases in zip(SERIES, sorted({*SHOWN, plan.asked.cases}), strict=False):
            mine = cases == plan.asked.cases
            axes.plot(
                list(rows),
                [rows[readers][cases].power for readers in rows],
                color=colour,
                lw=2.2 if mine else 1.2,
                label=f"{counted(cases, 'case')}",
            )
        axes.plot(plan.asked.readers, plan.asked.power, "o", color=INK, ms=6)
        axes.set_xticks(list(rows))
        axes.set_xlabel("readers")
        axes.set_ylabel("power")
        legend(axes, 4)

    return svg("power", 7.2, 3.8, draw)
