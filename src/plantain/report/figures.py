"""The figures of a report, drawn from its tables."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plantain.journal.questions.tables import FindingRow, Judged
from plantain.metrics.statistics.clusters import Rate
from plantain.pages.drawing import (
    ACCENT,
    FAILED,
    INK,
    MUTED,
    SUCCESS,
    percent_axis,
    row_axis,
    svg,
)
from plantain.pages.wording import words

DIRECTION_MARKERS = {"add": "o", "remove": "D"}


def codes_figure(table: Judged) -> str:
    """Draw failure codes by criterion, in judged attempts: the darker, the more frequent."""
    criteria = [row.criterion for row in table.criteria]
    totals = {(criterion, code): n for criterion, code, n in table.code_totals}
    codes = sorted(
        {code for _, code, _ in table.code_totals},
        key=lambda c: (sum(totals.get((k, c), 0) for k in criteria), c),
    )
    most = max(totals.values(), default=1)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for y, code in enumerate(codes):
            for x, criterion in enumerate(criteria):
                n = totals.get((criterion, code), 0)
                if n:
                    axes.barh(y, 0.94, left=x - 0.47, height=0.88, color=FAILED, alpha=0.12 + 0.68 * n / most)
                axes.text(x, y, str(n) if n else "·", ha="center", va="center", color=INK if n else MUTED)
        row_axis(axes, [words(code) for code in codes])
        axes.set_xlim(-0.55, len(criteria) - 0.45)
        axes.set_ylim(-0.6, max(1, len(codes)) - 0.4)
        axes.set_xticks(range(len(criteria)), [words(name).replace(" ", "\n") for name in criteria])
        axes.tick_params(axis="x", length=0)
        axes.spines[:].set_visible(False)

    return svg("codes", 6.4, 1.2 + 0.32 * max(1, len(codes)), draw)


def figure_three(rows: Sequence[FindingRow]) -> str:
    """Draw the composition by finding in tasks, and the weighted policy's qualified rate in attempts."""
    ordered = sorted(rows, key=lambda row: (row.modality, row.finding, row.direction), reverse=True)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
        for index, row in enumerate(ordered):
            left.barh(index, row.success, color=SUCCESS, height=0.62)
            left.barh(index, row.failed, left=row.success, color=FAILED, height=0.62)
            _dot(right, index, row.qualified_weighted, row.direction)
        row_axis(left, [_finding_label(row) for row in ordered])
        left.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
        left.set_xlabel("tasks:\nsuccess, failed")
        right.tick_params(axis="y", length=0)
        percent_axis(right, "x", narrow=True)
        right.set_xlabel("attempts qualified\n(weighted)")

    return svg("figure3", 6.4, 1.3 + 0.3 * max(1, len(ordered)), draw)


def _dot(axes: Axes, y: int, rate: Rate, direction: str) -> None:
    if rate.value is None or rate.low is None or rate.high is None:
        return
    axes.plot([rate.low, rate.high], [y, y], color=ACCENT, lw=1.4, solid_capstyle="round", alpha=0.7)
    axes.plot([rate.value], [y], color=ACCENT, marker=DIRECTION_MARKERS.get(direction, "s"), markersize=5.5)


def _finding_label(row: FindingRow) -> str:
    name = row.finding if len(row.finding) <= 26 else row.finding[:25] + "…"
    return f"{name}, {row.direction}"
