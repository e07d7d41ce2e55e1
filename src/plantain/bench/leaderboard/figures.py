"""The figures of a leaderboard: organs by models, and means with intervals."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plantain.bench.leaderboard.measures import Measure
from plantain.bench.leaderboard.scores import is_baseline
from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell
from plantain.pages.drawing import ACCENT, INK, MUTED, RULE, row_axis, svg
from plantain.pages.wording import DASH, plain


def all_figures(table: Table) -> dict[str, str]:
    """Draw every figure for which the table has data; return SVG by the figure's name."""
    drawn = {"dots": dot_plot(table)}
    for measure in table.main:
        drawn[f"heat-{measure.name}"] = heat_map(table, measure)
    return {name: figure for name, figure in drawn.items() if figure}


def _short(label: str) -> str:
    label = plain(label)
    return label if len(label) <= 30 else label[:29] + "…"


def slug(name: str) -> str:
    """Return a name in lower-case letters, digits and hyphens."""
    return "".join(c if c.isalnum() else "-" for c in name.lower())


def heat_map(table: Table, measure: Measure) -> str:
    """Draw a heat map of arms by organs as SVG: a number in each cell, darker for better, baselines below a line."""
    arms = table.general[::-1]
    organs = [*table.scores.organs, OVERALL]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for y, arm in enumerate(arms):
            for x, organ in enumerate(organs):
                _tile(axes, x, y, table.cell(arm.label, organ, measure.name), measure)
        row_axis(axes, [_short(arm.label) for arm in arms])
        floor = sum(map(is_baseline, arms))
        if 0 < floor < len(arms):
            axes.axhline(floor - 0.5, color=MUTED, lw=1.0)
        axes.axvline(len(organs) - 1.5, color=MUTED, lw=1.0)
        axes.set_xlim(-0.55, len(organs) - 0.45)
        axes.set_xticks(range(len(organs)), [name.replace(" ", "\n", 1) for name in organs])
        axes.xaxis.tick_top()
        axes.tick_params(axis="x", length=0, labelsize=8.5)
        axes.spines[:].set_visible(False)

    width = max(6.4, 2.4 + 0.62 * len(organs))
    return svg(f"heat-{slug(measure.name)}", width, 0.9 + 0.34 * max(2, len(arms)), draw)


def _tile(axes: Axes, x: int, y: int, cell: TableCell | None, measure: Measure) -> None:
    value = cell.estimate.value if cell is not None else None
    if cell is None or value is None:
        axes.text(x, y, DASH, ha="center", va="center", color=MUTED)
        return
    share = min(1.0, max(0.0, value))
    axes.barh(y, 0.94, left=x - 0.47, height=0.88, color=ACCENT, alpha=0.06 + 0.54 * share)
    weight = "bold" if cell.mark == "best" else "normal"
    axes.text(x, y, f"{value:.{measure.digits}f}", ha="center", va="center", color=INK, fontweight=weight)


def dot_plot(table: Table) -> str:
    """Draw each arm's mean and interval as SVG, a column per main metric, baselines hollow; "" without metrics."""
    arms, measures = table.general[::-1], table.main
    if not measures:
        return ""

    def draw(figure: Figure) -> None:
        columns = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axes, measure in zip(columns, measures, strict=True):
            for y, arm in enumerate(arms):
                cell = table.cell(arm.label, OVERALL, measure.name)
                if cell is None or cell.estimate.value is None:
                    continue
                colour = MUTED if is_baseline(arm) else ACCENT
                if cell.estimate.low is not None and cell.estimate.high is not None:
                    axes.plot([cell.estimate.low, cell.estimate.high], [y, y], color=colour, lw=1.4)
                face = "none" if is_baseline(arm) else colour
                axes.plot(
                    [cell.estimate.value], [y], color=colour, marker="o", markersize=4, markerfacecolor=face
                )
            row_axis(axes, [_short(arm.label) for arm in arms])
            axes.set_title(measure.name, fontsize=9.5)
            axes.margins(x=0.12)
            axes.locator_params(axis="x", nbins=3)
            axes.grid(axis="x", color=RULE, lw=0.5)
            axes.set_axisbelow(True)

    return svg("dots", 2.4 + 1.7 * len(measures), 0.9 + 0.28 * max(2, len(arms)), draw)
