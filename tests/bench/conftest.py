"""Leaderboards without figures, whose drawing takes seconds: `leaderboard/test_leaderboard.py` looks at them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plantain.bench.leaderboard import page
from plantain.bench.leaderboard.tables import Table


def empty(table: Table) -> dict[str, str]:
    """In place of `all_figures`: no figure."""
    return {}


@pytest.fixture(scope="module")
def no_figures_in_this_file() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "all_figures", empty)
        yield


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "all_figures", empty)
