"""MedEBench's Figures 3 and 4 for any benchmark: organs, similarity of prompt and image, shares of the regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plantain.bench.benchmark.describing import Description
from plantain.pages.drawing import INK, MUTED, RULE, SERIES, row_axis, svg

BINS = 20


def organs_figure(description: Description) -> str:
    """Figure 3: samples per organ, each bar divided by task, the largest task first. Bars, as thirteen angles of a
    pie cannot be compared."""
    rows = description.organs[::-1]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        most = max((row.samples for row in rows), default=1)
        for index, row in enumerate(rows):
            left = 0
            for task in (task for task in description.tasks if task.organ == row.organ):
                axes.barh(
                    index,
                    task.samples,
                    left=left,
                    height=0.64,
                    color=SERIES[0],
                    edgecolor="#ffffff",
                    linewidth=0.8,
                )
                left += task.samples
            share = row.samples / description.samples
            axes.text(left + most * 0.012, index, f"{row.samples} ({share:.0%})", va="center", color=INK)
        row_axis(axes, [row.organ for row in rows])
        axes.set_xlim(0, most * 1.16)
        axes.grid(axis="x", color=RULE, lw=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel(
            f"samples, divided by task ({description.samples} in all, from {description.clusters} sources)"
        )

    return svg("organs", 6.4, 1.0 + 0.32 * max(2, len(rows)), draw)


def properties_figure(description: Description) -> str:
    """Figure 4: how alike prompts and previous images are to CLIP, and what share of the image the regions take."""

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        _histogram(
            left,
            list(description.similarity.values()),
            "cosine of prompt and image before",
            description.no_similarity or "no similarity could be measured",
            None,
        )
        _histogram(
            right,
            list(description.roi_shares.values()),
            "share of the image that the region takes",
            "no sample has a region",
            (0.0, 1.0),
        )
        left.set_ylabel("samples")

    return svg("properties", 7.2, 2.9, draw)


def _histogram(
    axes: Axes, values: Sequence[float], name: str, nothing: str, span: tuple[float, float] | None
) -> None:
    axes.set_xlabel(name)
    if not values:
        axes.set_axis_off()
        axes.text(
            0.5,
            0.5,
            f"{name}:\n{_folded(nothing)}",
            ha="center",
            va="center",
            color=MUTED,
            transform=axes.transAxes,
        )
        return
    low, high = span or (min(values), max(values))
    if high - low < 1e-9:
        low, high = low - 0.01, high + 0.01
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    axes.bar(
        edges[:-1],
        counts,
        width=np.diff(edges),
        align="edge",
        color=SERIES[0],
        edgecolor="#ffffff",
        linewidth=0.6,
    )
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    median = float(np.median(values))
    axes.axvline(median, color=INK, lw=1.2, ls=(0, (3, 2)))
    axes.set_title(f"median {median:.3f}, n = {len(values)}", fontsize=9, color=MUTED, loc="left")


def _folded(text: str, width: int = 34) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "\n".join([*lines, line])
