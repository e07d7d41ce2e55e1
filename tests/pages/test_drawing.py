"""Figures of a page: the same bytes again, in the page's colours or, as files of their own, in printed ones."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from matplotlib.figure import Figure

from plantain.pages.drawing import SERIES, VARIABLES, row_axis, svg


def drawn(name: str = "lines") -> str:
    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for y, colour in enumerate(SERIES):
            axes.plot([0, 1], [y, y], color=colour)
        row_axis(axes, [f"<b>{y}</b> & more" for y in range(len(SERIES))])

    return svg(name, 4.0, 3.0, draw)


def test_figures_repeat_and_follow_the_page() -> None:
    figure = drawn()
    assert figure == drawn()
    for colour, variable in VARIABLES.items():
        assert colour not in figure
        assert "series" not in variable or variable in figure
    ElementTree.fromstring(figure)  # names that look like markup stay text


def test_ids_of_two_figures_of_a_page_never_meet() -> None:
    first, second = (set(re.findall(r'\bid="([^"]+)"', drawn(name))) for name in ("one", "two"))
    assert first and not first & second
