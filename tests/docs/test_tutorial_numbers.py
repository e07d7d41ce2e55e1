"""Numbers that the tutorial prints by hand are those that `plantain bench describe` would print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plantain.metrics.statistics.means import ClusteredMeans

PAGE = Path(__file__).parents[2] / "docs/tutorial/7-leaderboard.md"


def row(start: str) -> list[float]:
    """The cells of the page's table row whose first cell begins so."""
    (line,) = re.findall(rf"^\| {start}[^|]*\|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [float(cell) for cell in line.split("|")]


@pytest.mark.parametrize(("start", "pairs"), [("between two editors", 1), ("for a pair among seven", 21)])
def test_what_a_number_of_people_shows_is_what_the_statistics_say(start: str, pairs: int) -> None:
    # 7 editors make 7 * 6 / 2 = 21 pairs.
    for people, shown in zip(row("patients"), row(start), strict=True):
        found = ClusteredMeans(range(int(people))).detectable(0.2, pairs=pairs)
        assert found == pytest.approx(shown, abs=0.005)
