"""The figures as SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from plantain.journal import JournalReader
from plantain.report.page import ReportNumbers, codes_figure, figure_three, gather

FIGURES: dict[str, Callable[[ReportNumbers], str]] = {
    "codes": lambda n: codes_figure(n.judged),
    "figure3": lambda n: figure_three(n.findings),
}


@pytest.fixture(scope="module")
def numbers(paper_run: Path) -> ReportNumbers:
    with JournalReader.open(paper_run) as reader:
        return gather(reader)


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_wellformed_repeatable_and_follows_the_page(name: str, numbers: ReportNumbers) -> None:
    svg = FIGURES[name](numbers)
    assert svg == FIGURES[name](numbers)
    root = ElementTree.fromstring(svg)
    assert root.attrib["viewBox"] and "width" not in root.attrib and "height" not in root.attrib
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids)) and all(i.startswith(f"{name}-") for i in ids)
    assert all(target in ids for target in re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    # every colour is the page's own variable, so that the figure turns dark with it
    assert set(re.findall(r"(?:fill|stroke): *(#\w+)", svg)) <= {"#000000"}
