"""Leaderboards without figures, which take seconds to draw: `leaderboard/test_leaderboard.py` tests them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plantain.bench.leaderboard import page
from plantain.bench.leaderboard.tables import Table


def empty(table: Table) -> dict[str, str]:
    """No figure: replaces `all_figures`."""
    return {}


@pytest.fixture(scope="module")
def no_figures_in_this_file() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "all_figures", empty)
        yield


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "all_figures", empty)
