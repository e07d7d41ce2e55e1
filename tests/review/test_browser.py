"""A study and the viewer in a real browser: by keyboard, a region by mouse, two sizes, hostile text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plantain.journal import JournalReader
from plantain.records import TaskState
from plantain.review.answers import region_of
from plantain.review.results.rows import rows_of
from plantain.review.study import ReaderTask
from review.in_browser import Screen, at_first_item, running, serving
from review.study_on_paper import MODELS, small_study

pytestmark = pytest.mark.slow

HOSTILE = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>"

KEYS = {
    "accept": "1 2 3 4", "rate": "7 t 0 5", "pair": "1", "rank": "1 2", "real-or-edited": "2",
    "describe-ok": "1",
}  # fmt: skip


def read_study(screen: Screen, link: str, comment: str = "") -> int:
    """Read everything to the end; return the number of answers. Regions by mouse, all else by keyboard."""
    page = screen.page
    screen.then(page.goto, link)
    given, viewed = 0, set()
    while page.locator("#sheet[hidden]").count() or page.inner_text("#sheet h1") != "Thank you":
        if not page.locator("#sheet[hidden]").count():
            screen.then(page.keyboard.press, "Enter")
            continue
        assert page.locator("#question input:checked").count() == 0  # nothing is filled in beforehand
        task = page.evaluate("reader.item.task")
        if task == "choose-roi":
            box = page.locator("#panels figure").first.bounding_box()
            middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            for x, y in ((-40, -30), (40, -30), (40, 30), (-40, 30)):
                page.mouse.click(middle[0] + x, middle[1] + y)
            screen.press("Enter Control+z Control+y")
        else:
            if task not in viewed:
                # difference, magnifier, zoom, window: none of them is an answer
                screen.press("d m d m + . r")
                viewed.add(task)
            screen.press(KEYS[task])
        if comment:
            page.fill("#comment", comment)
            page.locator("#title").click()
        screen.then(page.keyboard.press, "Enter")
        assert page.inner_text("#wrong") == ""
        given += 1
    return given


def test_a_whole_study_by_keyboard(browser: Any, tmp_path: Path):
    study = small_study(tmp_path / "s", cases=1, models=MODELS[:2])
    items = sum(len(block.items) for block in study.blocks)
    with running(study) as (ratings, address):
        reader, token = ratings.invite()
        screen = Screen(browser, 1280, 800)
        assert read_study(screen, f"{address}/enter#{token}", HOSTILE) == items
        assert screen.complaints == []
        assert all(url.startswith((address, "blob:")) for url in screen.requests)
        assert token not in "".join(screen.requests) and screen.page.evaluate("window.pwned") is None
        assert len(ratings.current(reader.code)) == items
        small = Screen(browser, 834, 1112)
        small.then(small.page.goto, f"{address}/enter#{ratings.invite()[1]}")
        small.then(small.page.keyboard.press, "Enter")
        for one in (screen, small):
            assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        rows = [row for row in rows_of(study, ratings) if row.reader == reader.code]
    rated = next(row for row in rows if row.task is ReaderTask.RATE)
    assert list(rated.value["scores"].values()) == [7, 10, 0, 5] and rated.comment == HOSTILE
    ranks = {row.dimension: row.value["ranks"] for row in rows if row.task is ReaderTask.RANK}
    assert ranks == {"EA": [1, 2], "CP": [1, 2], "VQ": [1, 2]}
    for row in rows:  # 80 x 60 screen pixels around the middle of the image, whatever the zoom
        if row.task is ReaderTask.CHOOSE_ROI:
            mask = region_of(row.value)
            y, x = np.nonzero(mask)
            assert mask.shape == (64, 64) and abs(x.mean() - 31.5) < 1.5 and abs(y.mean() - 31.5) < 1.5
            assert mask.sum() == (np.ptp(x) + 1) * (np.ptp(y) + 1)


def test_eleven_models_are_ranked_by_keys(browser: Any, tmp_path: Path):
    """Digits are ranks 1 to 9, 0 is ten, and Shift adds ten; original and ground truth are references."""
    models = tuple(f"model-{letter}" for letter in "abcdefghijk")
    study = small_study(tmp_path / "s", ReaderTask.RANK, cases=1, models=models)
    with at_first_item(browser, study) as (screen, ratings):
        page = screen.page
        captions = page.locator("#panels figcaption").all_inner_texts()
        assert captions[:2] == ["Original", "After the real procedure"] and len(captions) == 13
        screen.press("1 2 3 4 5 6 7 8 9 0 Shift+Digit1")
        screen.then(page.keyboard.press, "Enter")
        (stored,) = ratings.current()
    assert stored.value["ranks"] == list(range(1, 12))


def test_a_reader_may_go_back_by_button_and_browser(browser: Any, tmp_path: Path):
    study = small_study(tmp_path / "s", ReaderTask.REAL_OR_EDITED, models=MODELS[:1], cases=2)
    with at_first_item(browser, study) as (screen, ratings):
        page = screen.page

        def answer() -> None:
            screen.press("1")
            screen.then(page.keyboard.press, "Enter")

        address = page.url
        answer()
        screen.then(page.click, "#back")
        assert page.evaluate("document.body.dataset.case") == "b1/0"
        answer()
        answer()
        assert page.evaluate("document.body.dataset.case") == "b1/2"
        screen.then(page.go_back)
        assert page.evaluate("document.body.dataset.case") == "b1/1" and page.url == address
        screen.then(page.keyboard.press, "Enter")
        assert page.evaluate("document.body.dataset.case") == "b1/2" and page.inner_text("#wrong") == ""
        assert len(ratings.current()) == 2


def test_the_stored_region_equals_the_region_on_the_page(browser: Any, tmp_path: Path):
    """Box, brush, eraser and undo to the pixel; a proposal that was undone is not stored."""
    study = small_study(tmp_path / "s", ReaderTask.CHOOSE_ROI, cases=1)
    with at_first_item(browser, study) as (screen, ratings):
        page = screen.page

        def at(x: float, y: float) -> list[float]:
            return page.evaluate(
                """([x, y]) => { const p = images.panels[0], box = p.figure.getBoundingClientRect();
                const s = images.scale(p), [left, top] = images.corner(p);
                return [box.left + left + x * s, box.top + top + y * s]; }""",
                [x, y],
            )

        def proposed() -> None:
            screen.press("1")
            # the page waits for the same
            page.evaluate("images.load(reader.item.proposals[0]).then(() => 0)")
            assert page.evaluate("reader.form.region.proposal") == 0

        proposed()
        for key, view in (("o", [1, 1]), ("Shift+F", [0, 1])):  # 1:1 pixels, the whole image
            screen.press(key)
            assert page.evaluate("[images.exact, images.zoom]") == view
        screen.press("Control+z")
        assert page.locator("#question input:checked").count() == 0
        screen.then(page.keyboard.press, "Enter")
        assert "draw a region" in page.inner_text("#wrong") and not ratings.current()
        screen.press("b")
        page.mouse.move(*at(10, 12))
        page.mouse.down()
        page.mouse.move(*at(30, 25))
        page.mouse.up()
        for tool in "he":  # the eraser removes the stroke of the brush
            screen.press(tool)
            page.mouse.click(*at(45, 45))
        proposed()
        screen.press("Control+z")
        screen.then(page.keyboard.press, "Enter")
        (stored,) = ratings.current()
    drawn = np.zeros((64, 64), bool)
    drawn[12:25, 10:30] = True
    assert stored.value["proposal"] is None and (region_of(stored.value) == drawn).all()


def test_a_run_by_keyboard_at_two_sizes(browser: Any, hostile_run: Path):
    from plantain.review.web.run_view import RunView
    from plantain.review.web.server import create_viewer

    with serving(create_viewer(RunView(hostile_run))) as address:
        screen = Screen(browser, 1280, 800)
        page = screen.page
        page.goto(address + "/")
        page.keyboard.press("/")
        page.keyboard.type("AMD")  # on which the panel's judges differ
        page.keyboard.press("Enter")
        page.wait_for_url("**/?text=AMD")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_selector('body[data-shown="0.2"]')
        page.keyboard.press("[")
        page.wait_for_selector('body[data-shown="0.1"]')
        assert "show=0.1" in page.url  # the state of the page is a link
        page.goto(page.url)
        page.wait_for_selector('body[data-shown="0.1"]')
        page.keyboard.press("+")
        for key, shown in (("]", "0.2"), ("[", "0.1")):  # the view is kept
            page.keyboard.press(key)
            page.wait_for_selector(f'body[data-shown="{shown}"]')
            assert page.locator("#panels figure").count() == 2 and page.evaluate("images.zoom") == 1.25
        page.keyboard.press("d")
        page.wait_for_selector("#panels figure:nth-child(3)")
        page.keyboard.down("f")
        page.wait_for_selector("#panels figure:nth-child(2) figcaption:text-is('Original')")
        page.keyboard.up("f")
        page.wait_for_selector("#panels figure:nth-child(2) figcaption:text-is('Round 1')")
        page.keyboard.press("u")
        page.wait_for_url("**/?text=AMD")

        with JournalReader.open(hostile_run) as reader:
            pending = next(row.id for row in reader.tasks(TaskState.PENDING))
        page.set_viewport_size({"width": 834, "height": 1112})
        for path in ("/", f"/task/{pending}"):
            page.goto(address + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 834
        assert screen.complaints == [] and all(url.startswith((address, "blob:")) for url in screen.requests)
