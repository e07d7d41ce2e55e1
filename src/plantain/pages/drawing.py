"""Figures: reproducible matplotlib SVG with the page's colours."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from plantain.pages.publishing import LOOK

VARIABLES = {
    "#010101": "var(--ink)",
    "#020202": "var(--muted)",
    "#030303": "var(--rule)",
    "#040404": "var(--success)",
    "#050505": "var(--failed)",
    "#0b0b0b": "var(--undecided)",
    "#060606": "var(--not-applicable)",
    "#070707": "var(--stopped)",
    "#080808": "var(--pending)",
    "#090909": "var(--accent)",
    **{f"#0a0a{number:02x}": f"var(--series-{number})" for number in range(1, 9)},
}
"""Placeholders of the page's colours, so that a figure follows its dark theme."""

INK, MUTED, RULE, SUCCESS, FAILED, UNDECIDED, NOT_APPLICABLE, STOPPED, PENDING, ACCENT, *SERIES = VARIABLES
"""`SERIES` are eight hues for equal entries, distinct in print and for most colour-blind readers."""

PRINTED = dict(re.findall(r"(--[\w-]+): light-dark\((#\w+),", LOOK.read_text(encoding="utf-8")))
"""The page's light colours, for a figure in a file of its own."""

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


def svg(name: str, width: float, height: float, draw: Callable[[Figure], None]) -> str:
    """Draw a figure of `width` by `height` inches with `draw`; return an SVG element whose ids start with `name`."""
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


def printed(figure: str) -> str:
    """Convert an SVG element of `svg` to a complete file: with prolog, and colours instead of CSS variables."""
    for variable, colour in PRINTED.items():
        figure = figure.replace(f"var({variable})", colour)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + figure


def row_axis(axes: Axes, labels: Sequence[str]) -> None:
    """Label the rows of the y axis, from the bottom, and set its limits."""
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, max(1, len(labels)) - 0.4)


def percent_axis(axes: Axes) -> None:
    """Format the x axis of shares from 0 to 1 as percentages."""
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
    axes.xaxis.set_ticks([0, 0.5, 1.0])
    axes.grid(axis="x", color=RULE, lw=0.5)
    axes.set_axisbelow(True)
    axes.set_xlim(-0.02, 1.04)
