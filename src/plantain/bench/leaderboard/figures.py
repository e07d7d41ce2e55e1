"""The figures of a leaderboard: organs by models, accuracy against preservation, and the effect of examples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from plantain.bench.leaderboard.measures import Measure
from plantain.bench.leaderboard.scores import is_baseline
from plantain.bench.leaderboard.studies import ShotRow
from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell
from plantain.metrics.statistics.means import Estimate
from plantain.pages.drawing import ACCENT, INK, MUTED, RULE, SERIES, legend, row_axis, svg
from plantain.pages.wording import DASH, plain

MARKERS = "osD^vPX*"
BASELINE_MARKERS = "sD^*"

RADAR_MODELS = len(SERIES)
"""Most lines of a radar; the heat map shows all models."""

RADAR_ORGANS = 3
"""Fewest organs of a radar."""


def all_figures(table: Table, shots: dict[str, list[ShotRow]]) -> dict[str, str]:
    """Draw every figure for which the table has data; return SVG by the figure's name."""
    drawn = {"scatter": scatter(table), "dots": dot_plot(table)}
    for measure in table.main:
        drawn[f"heat-{measure.name}"] = heat_map(table, measure)
        drawn[f"radar-{measure.name}"] = radar(table, measure)
    for name, rows in shots.items():
        shown = [m for m in table.measures if any(row.metric == m.name for row in rows)]
        drawn[f"shots-{name}"] = shots_figure(name, rows, shown)
    return {name: figure for name, figure in drawn.items() if figure}


def _short(label: str) -> str:
    label = plain(label)
    return label if len(label) <= 30 else label[:29] + "…"


def slug(name: str) -> str:
    """Return a name in lower-case letters, digits and hyphens."""
    return "".join(c if c.isalnum() else "-" for c in name.lower())


def _value(table: Table, label: str, organ: str, measure: Measure) -> float:
    cell = table.cell(label, organ, measure.name)
    return math.nan if cell is None or cell.estimate.value is None else cell.estimate.value


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


def radar(table: Table, measure: Measure) -> str:
    """Draw a radar chart of organs as SVG, one line per model; "" below three organs or without models."""
    organs = table.scores.organs
    models = [arm.label for arm in table.general if not is_baseline(arm)][:RADAR_MODELS]
    if len(organs) < RADAR_ORGANS or not models:
        return ""
    angles = [2 * math.pi * i / len(organs) for i in range(len(organs))]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot(projection="polar")
        assert isinstance(axes, PolarAxes)
        axes.set_theta_zero_location("N")
        axes.set_theta_direction(-1)
        for colour, marker, label in zip(SERIES, MARKERS, models, strict=False):
            values = [_value(table, label, organ, measure) for organ in organs]
            axes.plot(
                [*angles, angles[0]],
                [*values, values[0]],
                color=colour,
                marker=marker,
                markersize=4,
                lw=1.3,
                label=_short(label),
            )
        axes.set_xticks(angles, organs)
        axes.set_ylim(0, 1)
        axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"])
        axes.grid(color=RULE, lw=0.6)
        axes.spines["polar"].set_color(RULE)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, fontsize=9, handlelength=1.6)

    return svg(f"radar-{slug(measure.name)}", 5.2, 4.6 + 0.24 * math.ceil(len(models) / 2), draw)


def scatter(table: Table) -> str:
    """Draw editing accuracy against context preservation as SVG, with intervals; "" if either is missing."""
    accuracy, preservation = table.measure("EA"), table.measure("CP") or table.measure("CP (strict)")
    if accuracy is None or preservation is None:
        return ""
    points = []
    for arm in table.general:
        x, y = (table.cell(arm.label, OVERALL, m.name) for m in (preservation, accuracy))
        if x and y and x.estimate.value is not None and y.estimate.value is not None:
            points.append((arm, x.estimate, y.estimate))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        models = [point for point in points if not is_baseline(point[0])]
        for rank, (arm, x, y) in enumerate(models):
            colour = SERIES[rank % len(SERIES)]
            _point(axes, (x, y), colour, colour, MARKERS[rank % len(MARKERS)], _short(arm.label))
        for marker, (arm, x, y) in zip(BASELINE_MARKERS, points[len(models) :], strict=False):
            _point(axes, (x, y), MUTED, "none", marker, arm.label)
        axes.grid(color=RULE, lw=0.5)
        axes.set_axisbelow(True)
        axes.set_ylim(-0.04, 1.04)
        lows = [x.value if x.low is None else x.low for _, x, _ in points]
        axes.set_xlim(max(-1.0, min(0.5, min((low or 0.0 for low in lows), default=0.0) - 0.05)), 1.03)
        axes.set_xlabel(f"context preservation ({preservation.name})")
        axes.set_ylabel("editing accuracy (EA)")
        legend(axes, columns=2)

    return svg("scatter", 6.4, 4.0 + 0.24 * math.ceil(len(points) / 2), draw)


def _point(
    axes: Axes, at: tuple[Estimate, Estimate], colour: str, face: str, marker: str, label: str
) -> None:
    x, y = at
    across, up = x.value or 0.0, y.value or 0.0
    if x.low is not None and x.high is not None:
        axes.plot([x.low, x.high], [up, up], color=colour, lw=1.1, alpha=0.55)
    if y.low is not None and y.high is not None:
        axes.plot([across, across], [y.low, y.high], color=colour, lw=1.1, alpha=0.55)
    axes.plot(
        [across],
        [up],
        color=colour,
        marker=marker,
        markersize=7,
        ls="none",
        label=label,
        markerfacecolor=face,
    )


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


def shots_figure(
    model: str,
    rows: Sequence[ShotRow],
    measures: Sequence[Measure],
    what: str = "demonstrations in the prompt",
) -> str:
    """Draw means over all tasks, with intervals, by number of examples, as SVG; `what` is the axis label."""
    overall = [row for row in rows if row.task == ""]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for i, measure in enumerate(measures):
            colour = SERIES[i % len(SERIES)]
            line = [row for row in overall if row.metric == measure.name]
            xs = [row.shots + 0.06 * (i - len(measures) / 2) for row in line]
            ys = [np.nan if row.estimate.value is None else row.estimate.value for row in line]
            marker = MARKERS[i % len(MARKERS)]
            axes.plot(xs, ys, color=colour, marker=marker, markersize=6, lw=1.4, label=measure.name)
            for x, row in zip(xs, line, strict=True):
                if row.estimate.low is not None and row.estimate.high is not None:
                    axes.plot([x, x], [row.estimate.low, row.estimate.high], color=colour, lw=1.1)
        numbers = sorted({row.shots for row in rows})
        axes.set_xticks(numbers, [str(number) for number in numbers])
        axes.set_xlabel(what)
        ends = [row.estimate.low for row in overall if row.estimate.low is not None]
        axes.set_ylim(min(-0.04, *ends, 0.0), 1.04)
        axes.grid(axis="y", color=RULE, lw=0.5)
        axes.set_axisbelow(True)
        legend(axes, columns=4)

    return svg(f"shots-{slug(model)}", 6.4, 3.6, draw)
