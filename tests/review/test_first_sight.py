"""First screen of the viewer and of a reader study, and the clicks or keys that two tasks take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plantain.review.ratings import Ratings
from plantain.review.study import ReaderTask
from review.in_browser import (
    IN_VIEW,
    SIZES_AND_THEMES,
    assert_first_sight,
    at_first_item,
    running,
    serving,
    window,
)
from review.study_on_paper import MODELS, small_study

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(paper_run: Path) -> Iterator[str]:
    from plantain.review.web.run_view import RunView
    from plantain.review.web.server import create_viewer

    with serving(create_viewer(RunView(paper_run))) as address:
        yield address


def open_failed(page: Any, address: str) -> int:
    """Open a failed edit from the first page by the mouse; return the number of clicks."""
    page.goto(address)
    page.click("nav.states a.failed")
    page.click("#rows a.open")
    page.wait_for_selector("body[data-shown]")
    return 2


@pytest.mark.parametrize(("width", "theme"), SIZES_AND_THEMES)
def test_the_viewer_shows_images_first(browser: Any, address: str, width: int, theme: str):
    with window(browser, width, 900, theme) as page:
        page.goto(address)
        assert_first_sight(page)
        cards = page.evaluate("getComputedStyle(document.querySelector('#rows tr[id]')).display")
        assert cards == ("grid" if width == 400 else "table-row")
        words = page.evaluate("document.querySelector('#rows .words').getBoundingClientRect().width")
        assert words > 320, "40 characters of 8 pixels"
        open_failed(page, address)
        assert_first_sight(page)


def test_a_failed_edit_and_its_reason_need_two_clicks_or_three_keys(browser: Any, address: str):
    """Every criterion, what failed and both images are in the window of 1280 x 900, without scrolling."""
    with window(browser, 1280, 900, "light") as page:
        assert open_failed(page, address) == 2
        by_mouse = page.url
        assert page.evaluate(IN_VIEW, ".verdicts th[scope=row]") and page.evaluate(IN_VIEW, "#panels figure")
        assert page.locator(".round:visible").count() == 1
        assert page.locator(".round:visible td .no", has_text="Lost grain").count() == 1
        page.goto(address)
        page.keyboard.press("4")  # the fourth of the states: failed
        page.wait_for_url("**state=failed**")
        for key in ("j", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector("body[data-shown]")
        assert page.url == by_mouse


def test_round_image_and_text_stay_in_step(browser: Any, address: str):
    with window(browser, 1280, 900, "dark") as page:
        open_failed(page, address)
        for key, shown in (("[", 4), ("[", 3), ("]", 4), ("]", 5), ("]", 5)):
            page.keyboard.press(key)
            page.wait_for_selector(f'body[data-shown="0.{shown}"]')
            assert page.locator(".round:visible h2").all_inner_texts() == [f"Round {shown}"]
            page.wait_for_selector(f"#panels figure:nth-child(2) figcaption:text-is('Round {shown}')")
            assert page.inner_text('#rounds [aria-pressed="true"]') == str(shown)


def test_colours_of_facts_mean_good_and_bad(browser: Any, address: str):
    """The edit that should add a lesson failed: the finding is not visible (bad), and no other appeared (good)."""
    with window(browser, 1280, 900, "dark") as page:
        open_failed(page, address)
        facts = {
            name: page.locator(".round:visible tr", has=page.locator(f"th:text-is('{name}')")).locator(
                "td span"
            )
            for name in ("Finding visible", "Other disease")
        }
        found = {name: (one.inner_text(), one.get_attribute("class")) for name, one in facts.items()}
    assert found == {"Finding visible": ("no", "no"), "Other disease": ("none", "yes")}


def test_images_fill_the_stage(browser: Any, address: str):
    """Two square images are side by side in a wide window and one above the other in a narrow one."""
    for width, height, columns in ((1280, 900, 2), (400, 900, 1)):
        with window(browser, width, height, "dark") as page:
            open_failed(page, address)
            first, second = (page.locator("#panels figure").nth(i).bounding_box() for i in (0, 1))
            assert (first["x"] != second["x"]) == (columns == 2)
            assert columns * first["width"] > (890 if width == 1280 else 395)
            if width == 1280:
                stage = page.locator("#stage").bounding_box()
                assert (stage["x"], stage["y"] + stage["height"]) == (0, 900)


def test_print_shows_every_round(browser: Any, address: str):
    with window(browser, 1280, 900, "light") as page:
        open_failed(page, address)
        page.emulate_media(media="print")
        assert page.locator(".round:visible").count() == 5


@pytest.fixture(scope="module")
def accepting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ratings, str]]:
    """A study that is served: its ratings and its address."""
    folder = tmp_path_factory.mktemp("accepting") / "s"
    study = small_study(folder, ReaderTask.ACCEPT, cases=3, models=MODELS[:1])
    with running(study) as served:
        yield served


@pytest.mark.parametrize(("width", "theme"), SIZES_AND_THEMES)
def test_a_reader_sees_images_count_and_save(
    browser: Any, accepting: tuple[Ratings, str], width: int, theme: str
):
    ratings, address = accepting
    token = ratings.invite()[1]
    for height in (720, 1000):
        with window(browser, width, height, theme) as page:
            page.goto(f"{address}/enter#{token}")
            page.wait_for_selector("body[data-turn]")
            assert_first_sight(page, image=False)
            assert "3 cases. Every answer is stored at once" in page.inner_text("body")
            page.keyboard.press("Enter")
            page.wait_for_selector("#room:not([hidden])")
            assert_first_sight(page)
            assert page.inner_text("#count") == "1 of 3"
            assert page.evaluate(IN_VIEW, "#save")
            line = page.locator("#keyline:visible").all_inner_texts()
            assert line == (["1 to 4 yes, again no · Enter saves · ? all keys"] if width == 1280 else [])


def test_the_readers_own_count_is_shown_and_criteria_and_save_fit_900_pixels(browser: Any, tmp_path: Path):
    tasks = (ReaderTask.REAL_OR_EDITED, ReaderTask.ACCEPT)
    study = small_study(tmp_path / "s", *tasks, cases=1, models=MODELS[:1])
    with at_first_item(browser, study) as (screen, _ratings):
        page = screen.page
        page.set_viewport_size({"width": 1280, "height": 900})
        for place in ("1 of 2", "2 of 2"):
            assert (page.inner_text("#count"), page.inner_text("#where")) == (place, "Part 1 of 2")
            screen.press("1")
            screen.then(page.keyboard.press, "Enter")
        for _ in ("close the part", "start the next"):
            screen.then(page.keyboard.press, "Enter")
        assert page.inner_text("#where") == "Part 2 of 2"
        assert page.locator("#question [role=radiogroup]").count() == 4
        assert page.evaluate(IN_VIEW, "#question [role=radiogroup], #save")


def test_the_instruction_is_folded_after_its_command(browser: Any, tmp_path: Path):
    study = small_study(tmp_path / "s", ReaderTask.ACCEPT, cases=1, models=MODELS[:1])
    with at_first_item(browser, study) as (screen, _ratings):
        page = screen.page
        assert page.inner_text("#instruction") == "Add a small pneumothorax."
        page.evaluate(
            "text => $('instruction').replaceChildren(...folded(text))", "Add a mass: dark. Keep the rest."
        )
        assert page.inner_text("#instruction summary") == "Add a mass:"
        assert page.inner_text("#instruction") == "Add a mass:"
        page.click("#instruction summary")
        assert "Keep the rest." in page.inner_text("#instruction")


def test_one_case_is_rated_in_five_keys_or_five_clicks(browser: Any, tmp_path: Path):
    """Four criteria and one to save: nothing else is needed."""
    study = small_study(tmp_path / "s", ReaderTask.RATE, cases=1, models=MODELS[:2])
    with at_first_item(browser, study) as (screen, ratings):
        keys = ["7", "t", "0", "5", "Enter"]
        screen.press(" ".join(keys[:-1]))
        screen.then(screen.page.keyboard.press, keys[-1])
        sets = screen.page.locator("#question fieldset")
        clicks = [lambda i=i: sets.nth(i).locator("label").nth(7).click() for i in range(4)]
        for click in clicks:
            click()
        screen.then(screen.page.click, "#save")
        scores = [list(one.value["scores"].values()) for one in ratings.current()]
    assert len(keys) == len(clicks) + 1 == 5 and scores == [[7, 10, 0, 5], [7, 7, 7, 7]]
