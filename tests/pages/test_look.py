"""The stylesheet: one file for all pages, and letters that can be read on every ground, in light and in dark."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import plantain
from plantain.pages.publishing import LOOK

TOKENS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", LOOK.read_text(encoding="utf-8")
    )
}


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_and_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("letters", "ground"),
    [
        *itertools.product(
            ("ink", "muted", "accent", "success", "failed", "warning"), ("paper", "card", "tint")
        ),
        ("on-accent", "accent"),
    ],
)
def test_letters_can_be_read_on_every_ground(letters: str, ground: str, theme: int) -> None:
    assert contrast(TOKENS[letters][theme], TOKENS[ground][theme]) >= 4.5  # WCAG 2.2, 1.4.3, level AA


def test_no_page_brings_a_stylesheet_of_its_own() -> None:
    pages = [
        path for path in Path(plantain.__file__).parent.rglob("*") if path.suffix in (".j2", ".html", ".css")
    ]
    own = [path for path in pages if path.suffix == ".css" or re.search(r"<style>(?!\{\{)", path.read_text())]
    assert own == [LOOK]
