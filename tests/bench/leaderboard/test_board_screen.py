"""The leaderboard in a real browser: first screen, names of metrics, one sample of all models, pairs on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.scored_run import EXACT, NOISY, Made, make_benchmark, make_run, plain_scores
from plantain.bench.generate.runfile import PromptVariant
from plantain.bench.leaderboard.page import write_leaderboard
from plantain.bench.leaderboard.tables import Table
from review.in_browser import IN_VIEW, SIZES_AND_THEMES, Screen, assert_first_sight, in_thread, window

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def board(made: Made, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_leaderboard([made.run], tmp_path_factory.mktemp("out")).as_uri()


@pytest.fixture
def page(browser: Any, board: str) -> Iterator[Any]:
    with window(browser, 1280, 900, "light") as page:
        page.goto(board)
        yield page


@pytest.mark.parametrize(("width", "theme"), SIZES_AND_THEMES)
def test_the_first_image_is_on_the_first_screen_without_network_or_errors(
    browser: Any, board: str, width: int, theme: str
) -> None:
    screen = Screen(browser, width, 900, color_scheme=theme, reduced_motion="reduce")
    screen.page.goto(board)
    assert_first_sight(screen.page)
    assert all(url.startswith(("data:", "file:")) for url in screen.requests)
    assert screen.complaints == []
    assert screen.page.locator("figure svg").count() > 5


def test_a_column_is_sorted_by_its_heading_and_baselines_stay_below(page: Any) -> None:
    values = (
        "[...document.querySelector('table.sortable').tBodies].map(body =>"
        "[...body.querySelectorAll('tr:not(.fixed)')].map(row => Number(row.cells[%d].dataset.value)))"
    )
    heading = "[...document.querySelector('table.sortable').tHead.rows[0].cells]"
    column = page.evaluate(f"{heading}.findIndex(cell => cell.textContent.trim().startsWith('VQ'))")
    before = page.evaluate(values % column)
    assert len(before[0]) > 2 and len(before) == 2  # models, baselines
    for order in ("descending", "ascending"):
        page.evaluate(f"{heading}[{column}].querySelector('button').click()")
        after = page.evaluate(values % column)
        assert after == [sorted(group, reverse=order == "descending") for group in before]
        assert page.evaluate(f"{heading}[{column}].getAttribute('aria-sort')") == order


def test_every_model_has_one_row_until_its_other_settings_are_shown(browser: Any, tmp_path: Path) -> None:
    bench = make_benchmark(tmp_path / "bench", ("Skin",), 4)
    arms = [EXACT, replace(EXACT, label=EXACT.label + "+detailed", prompt=PromptVariant.DETAILED), NOISY]
    run = tmp_path / "run"
    in_thread(lambda: make_run(run, bench, arms, lambda _, i, k: plain_scores(NOISY, i, k), images=False))
    board = write_leaderboard([run], tmp_path / "out")
    with window(browser, 1280, 900, "light") as page:
        page.goto(board.as_uri())
        rows = page.locator("#table .lead-table tbody tr:not(.fixed):visible th")
        assert rows.all_inner_texts() == [EXACT.label, NOISY.label]
        page.check("#variants")
        assert rows.all_inner_texts() == [arm.label for arm in arms]


def test_the_table_explains_itself(page: Any, table: Table) -> None:
    """Metrics spelled out on hover and in the legend, one sample of all models below, intervals as dots or a reason."""
    legend = page.inner_text("#table .legend")
    titles = set(page.locator("#table figure svg text").all_text_contents())
    for measure in table.main:
        heading = page.locator("#table th abbr", has_text=measure.name).first
        assert heading.get_attribute("title") == measure.label
        assert f"{measure.name}: {measure.label}" in legend and measure.name in titles
    assert page.evaluate("document.querySelector('#table > .scroll').nextElementSibling.id") == "example"
    captions = [text.split("\n")[0] for text in page.locator("#example figcaption").all_inner_texts()]
    assert captions[0] == "Before" and captions[1].startswith("Truth")
    assert {arm.label for arm in table.general if arm.samples is None} - {"ground-truth"} <= set(captions)
    assert page.inner_text("body").lower().count("no interval:") <= 1
    assert page.locator("td", has_text="no interval").count() == 0


def test_one_click_opens_the_differences_between_two_editors(page: Any, table: Table) -> None:
    """The link to the pairs opens the first metric's table: difference, interval and p of each pair."""
    assert page.locator("#pairs details[open]").count() == 0
    page.click('nav.contents a:has-text("Pairs of models")')
    first = table.differences[table.main[0].name][0]
    row = page.locator("#first-pairs tr", has_text=first.first).filter(has_text=first.second).first
    row.wait_for(state="visible")
    assert page.evaluate(IN_VIEW, "#first-pairs tbody tr:first-child")
    low, high = first.estimate.low, first.estimate.high
    cells = row.locator("td").all_inner_texts()
    assert cells[2] == (f"{low:.3f} to {high:.3f}" if low is not None else "–") and cells[3]
