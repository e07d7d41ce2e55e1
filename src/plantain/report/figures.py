"""The figures of a report: matplotlib SVG that follows the page's colours and comes out byte for byte again."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from plantain.journal.tables import Composition, CompositionRow, FindingRow, Judged, RoundRow
from plantain.metrics.clusters import Rate
from plantain.report.labels import DIRECTIONS, STATES, modality, percent, words

VARIABLES = {
    "#010101": "var(--ink)",
    "#020202": "var(--muted)",
    "#030303": "var(--rule)",
    "#040404": "var(--success)",
    "#050505": "var(--failed)",
    "#060606": "var(--not-applicable)",
    "#070707": "var(--stopped)",
    "#080808": "var(--pending)",
    "#090909": "var(--accent)",
}
"""Colours that stand for the page's own, so that a figure turns dark with it."""

INK, MUTED, RULE, SUCCESS, FAILED, NOT_APPLICABLE, STOPPED, PENDING, ACCENT = VARIABLES
STATE_COLOURS = dict(zip(STATES, (SUCCESS, FAILED, NOT_APPLICABLE, STOPPED, PENDING), strict=True))
ROUNDS = 5
"""Rounds on the axis at least: the paper's."""

DIRECTION_MARKERS = {"add": "o", "remove": "D"}

STYLE = {
    "svg.hashsalt": "plantain",
    "svg.fonttype": "none",
    "font.size": 10.0,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "text.color": INK,
    "text.parse_math": False,
    "legend.frameon": False,
}


def composition_figure(table: Composition) -> str:
    """Tasks per modality and direction, stacked by outcome, with the success rate at the end of each bar."""
    rows = table.rows[::-1]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        left = [0] * len(rows)
        for state, colour in STATE_COLOURS.items():
            sizes = [_count(row, state) for row in rows]
            if any(sizes):
                axes.barh(range(len(rows)), sizes, left=left, color=colour, height=0.62, label=STATES[state])
                left = [a + b for a, b in zip(left, sizes, strict=True)]
        longest = max(left, default=1) or 1
        for index, row in enumerate(rows):
            axes.text(left[index] + longest * 0.015, index, percent(row.rate.value), va="center", color=INK)
        _rows(axes, [f"{modality(row.modality)}, {DIRECTIONS[row.direction].lower()}" for row in rows])
        axes.set_xlim(0, longest * 1.12)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_xlabel("tasks (at the end of each bar: success of success and failed)")
        _legend(axes, columns=3)

    return _svg("composition", 6.4, 1.35 + 0.42 * len(rows), draw)


def rounds_figure(rows: Sequence[RoundRow]) -> str:
    """Rounds to success: share of successes per round, cumulative share, and the share still succeeding."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        numbers = [row.round for row in rows]
        ticks = range(1, max(ROUNDS, len(rows)) + 1)
        axes.bar(
            numbers, [row.share or 0 for row in rows], color=SUCCESS, width=0.62, label="share of successes"
        )
        axes.plot(numbers, [_or_gap(row.cumulative) for row in rows], color=INK, marker="o", markersize=4, lw=1.4,
                  label="cumulative share")  # fmt: skip
        axes.plot(numbers, [_or_gap(row.hazard) for row in rows], color=ACCENT, marker="D", markersize=4, lw=1.2,
                  ls=(0, (3, 2)), label="success among tasks that reached it")  # fmt: skip
        for row in rows:
            if row.success:
                axes.text(row.round, 0.015, str(row.success), ha="center", va="bottom", color=INK)
        axes.set_xticks(ticks, [str(number) for number in ticks])
        axes.set_xlim(0.4, ticks[-1] + 0.6)
        axes.set_xlabel("round (number in the bar: tasks that succeeded in it)")
        _percent_axis(axes, "y")
        _legend(axes, columns=1)

    return _svg("rounds", 6.4, 3.9, draw)


def findings_figure(rows: Sequence[FindingRow]) -> str:
    """Success per finding and direction in tasks: a dot with its 95 % interval, best first, n at the right."""
    rated = [row for row in rows if row.rate.value is not None]
    ordered = sorted(
        rated,
        key=lambda row: (-(row.rate.value or 0), row.modality, row.finding, row.direction),
        reverse=True,
    )

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for index, row in enumerate(ordered):
            _dot(axes, index, row.rate, row.direction)
            axes.text(1.03, index, f"n = {row.rate.n}", va="center", color=MUTED)
        _rows(axes, [_finding_label(row) for row in ordered])
        _percent_axis(axes, "x", right=1.16)
        axes.set_xlabel("tasks that succeeded, 95 % interval")

    return _svg("findings", 6.4, 1.1 + 0.3 * max(1, len(ordered)), draw)


def codes_figure(table: Judged) -> str:
    """Failure codes by criterion, in judged attempts: the darker, the more frequent."""
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
        _rows(axes, [words(code) for code in codes])
        axes.set_xlim(-0.55, len(criteria) - 0.45)
        axes.set_ylim(-0.6, max(1, len(codes)) - 0.4)
        axes.set_xticks(range(len(criteria)), [words(name).replace(" ", "\n") for name in criteria])
        axes.tick_params(axis="x", length=0)
        axes.spines[:].set_visible(False)

    return _svg("codes", 6.4, 1.2 + 0.32 * max(1, len(codes)), draw)


def figure_three(rows: Sequence[FindingRow]) -> str:
    """Composition by finding in tasks, and beside it the weighted policy's qualified rate in attempts."""
    ordered = sorted(rows, key=lambda row: (row.modality, row.finding, row.direction), reverse=True)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
        for index, row in enumerate(ordered):
            left.barh(index, row.success, color=SUCCESS, height=0.62)
            left.barh(index, row.failed, left=row.success, color=FAILED, height=0.62)
            _dot(right, index, row.qualified_weighted, row.direction)
        _rows(left, [_finding_label(row) for row in ordered])
        left.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
        left.set_xlabel("tasks: success, failed")
        right.tick_params(axis="y", length=0)
        _percent_axis(right, "x", narrow=True)
        right.set_xlabel("attempts qualified (weighted)")

    return _svg("figure3", 6.4, 1.1 + 0.3 * max(1, len(ordered)), draw)


def _svg(name: str, width: float, height: float, draw: Callable[[Figure], None]) -> str:
    """The SVG element, without prolog, sized by its box, its ids made unique, its colours the page's."""
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # the browser has its own fonts
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.patch.set_visible(False)
        draw(figure)
        for axes in figure.axes:
            axes.patch.set_visible(False)
        buffer = io.StringIO()
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'^<svg ([^>]*?)(?:width|height)="[^"]*pt" ', r"<svg \1", text)
    text = re.sub(r'^(<svg [^>]*?)(?:width|height)="[^"]*pt"', r"\1", text)
    text = re.sub(r'\b(id=")', rf"\1{name}-", text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{name}-", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    return text


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, max(1, len(labels)) - 0.4)


def _percent_axis(axes: Axes, which: str, right: float = 1.04, narrow: bool = False) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
    axis.set_ticks([0, 0.5, 1.0] if narrow else [0, 0.25, 0.5, 0.75, 1.0])
    axes.grid(axis="x" if which == "x" else "y", color=RULE, lw=0.5)
    axes.set_axisbelow(True)
    if which == "x":
        axes.set_xlim(-0.02, right)
    else:
        axes.set_ylim(0, right)


def _dot(axes: Axes, y: int, rate: Rate, direction: str) -> None:
    if rate.value is None or rate.low is None or rate.high is None:
        return
    axes.plot([rate.low, rate.high], [y, y], color=ACCENT, lw=1.4, solid_capstyle="round", alpha=0.7)
    axes.plot([rate.value], [y], color=ACCENT, marker=DIRECTION_MARKERS.get(direction, "s"), markersize=5.5)


def _legend(axes: Axes, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, fontsize=9,
                    handlelength=1.2, borderpad=0.2, columnspacing=1.2)  # fmt: skip


def _finding_label(row: FindingRow) -> str:
    name = row.finding if len(row.finding) <= 26 else row.finding[:25] + "…"
    return f"{name}, {row.direction}"


def _count(row: CompositionRow, state: str) -> int:
    return int(getattr(row, state))


def _or_gap(value: float | None) -> float:
    return float("nan") if value is None else value
