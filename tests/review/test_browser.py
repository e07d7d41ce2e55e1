"""Whole studies in a real browser: by keyboard, a region by mouse, two sizes, hostile text, nothing from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as MatplotlibPath

from plantain.review.answers import region_of
from plantain.review.ratings import ADMINISTRATOR, Ratings
from plantain.review.results.rows import rows_of
from plantain.review.study import ItemKind, ReaderTask, Study
from review.in_browser import CHROMIUM, LAID_OUT, Screen, at_first_item, running
from review.study_on_paper import MODELS, small_study

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")]

HOSTILE = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>"


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[Study, Ratings, str]]:
    study = small_study(
        tmp_path_factory.mktemp("browser") / "s", cases=1, models=("acme/zebra-9", "beta/yak-2"), training=1
    )
    with running(study) as (ratings, address):
        yield study, ratings, address


KEYS = {
    "accept": "1 2 3 4", "rate": "7 t 0 5", "pair": "1", "rank": "1 2 2", "real-or-edited": "2",
    "real-or-edited-2afc": "2", "which-finding": "3", "describe-ok": "1",
}  # fmt: skip


def read_study(screen: Screen, link: str, remark: str = "") -> int:
    """Everything to the end; how many answers were given. Regions by mouse, all else by keyboard."""
    page = screen.page
    screen.then(page.goto, link)
    screen.then(page.keyboard.press, "y")  # the display
    given = 0
    while (
        page.evaluate("document.querySelector('#sheet').hidden")
        or page.inner_text("#sheet h1") != "Thank you"
    ):
        if not page.evaluate("document.querySelector('#sheet').hidden"):
            screen.then(page.keyboard.press, "Enter")
            continue
        task = page.evaluate("room.item.task")
        assert not page.evaluate(
            "document.querySelectorAll('#question input:checked').length"
        )  # nothing filled in
        if task == "choose-roi":
            box = page.locator("#panels figure").first.bounding_box()
            middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            for x, y in ((-40, -30), (40, -30), (40, 30), (-40, 30)):
                page.mouse.click(middle[0] + x, middle[1] + y)
            screen.press("Enter Control+z Control+y")
        else:
            screen.press("d m d m + ] . r")  # difference, magnifier, zoom, window: none of them is an answer
            screen.press(KEYS[task])
        if remark:
            page.fill("#comment", remark)
            page.locator("#title").click()
        screen.then(page.keyboard.press, "Enter")
        assert page.inner_text("#wrong") == ""
        given += 1
        if page.locator("#feedback:not([hidden])").count():
            screen.then(page.keyboard.press, "Enter")
    return given


def test_whole_studies_at_two_sizes(browser, served, tmp_path: Path):
    study, ratings, address = served
    readers = [ratings.invite() for _ in range(2)]
    items = sum(len(block.items) for block in study.blocks)
    for (reader, token), size in zip(readers, ((1280, 800), (834, 1112)), strict=True):
        screen = Screen(browser, *size)
        assert read_study(screen, f"{address}/enter#{token}", HOSTILE if size[0] == 1280 else "") == items
        assert screen.complaints == []
        assert all(url.startswith((address, "blob:")) for url in screen.requests)
        assert token not in "".join(screen.requests) and screen.page.evaluate("window.pwned") is None
        assert screen.page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert len(ratings.current(reader.code)) == items == len(ratings.history(reader.code))
    admin = Screen(browser, 1280, 800)
    admin.page.goto(f"{address}/enter#{ratings.invite(ADMINISTRATOR, '')[1]}")
    admin.page.wait_for_selector("#readers table")
    admin.page.click("#agreement")
    admin.page.wait_for_selector("#agreed table")
    assert admin.page.evaluate("window.pwned") is None and admin.complaints == []
    rows = [row for row in rows_of(study, ratings) if row.reader == readers[0][0].code]
    rated = next(row for row in rows if row.task is ReaderTask.RATE and row.kind is ItemKind.MAIN)
    assert list(rated.value["scores"].values()) == [7, 10, 0, 5] and rated.comment == HOSTILE
    drawn = [region_of(row.value) for row in rows if row.task is ReaderTask.CHOOSE_ROI]
    for mask in drawn:  # 80 x 60 screen pixels around the middle of the picture, whatever the zoom
        y, x = np.nonzero(mask)
        assert mask.shape == (64, 64) and abs(x.mean() - 31.5) < 1.5 and abs(y.mean() - 31.5) < 1.5
        assert mask.sum() == (np.ptp(x) + 1) * (np.ptp(y) + 1)


def test_back_by_button_and_browser_leaves_nobody_stuck(browser, tmp_path: Path):
    """A study whose answers are fixed: whoever looks back, after feedback too, comes forward again."""
    study = small_study(
        tmp_path / "s", ReaderTask.REAL_OR_EDITED, models=MODELS[:1], cases=2, training=2, changes=False
    )
    with at_first_item(browser, study) as (screen, ratings):
        page = screen.page

        def answer() -> None:
            screen.press("1")
            screen.then(page.keyboard.press, "Enter")

        address = page.url
        assert address.count("/") == 3 and address.endswith("/")
        where = lambda: page.evaluate("document.body.dataset.case")  # noqa: E731
        answer()
        screen.then(page.keyboard.press, "Enter")  # the feedback
        answer()
        screen.then(page.click, "#back")  # from the feedback
        assert where() == "b1/0"
        answer()  # told again
        screen.then(page.keyboard.press, "Enter")
        answer()
        screen.then(page.keyboard.press, "Enter")
        assert where() == "b1/2"
        answer()
        assert where() == "b1/3"
        screen.then(page.go_back)
        assert where() == "b1/2" and page.url == address
        screen.then(page.keyboard.press, "Enter")
        assert where() == "b1/3" and page.inner_text("#wrong") == ""
        main = [one for one in ratings.history() if study.by_item[one.item][1].kind is not ItemKind.TRAINING]
        assert len(main) == 1


def test_a_region_is_what_the_page_shows(browser, tmp_path: Path):
    """Box, brush, eraser and undo to the pixel; a proposal that was taken back is not what is stored."""
    study = small_study(tmp_path / "s", ReaderTask.CHOOSE_ROI, cases=1)
    with at_first_item(browser, study) as (screen, ratings):
        page = screen.page

        def at(x: float, y: float) -> list[float]:
            return page.evaluate(
                """([x, y]) => { const p = pictures.panels[0], box = p.figure.getBoundingClientRect();
                const s = pictures.scale(p), [left, top] = pictures.corner(p);
                return [box.left + left + x * s, box.top + top + y * s]; }""",
                [x, y],
            )

        def proposed() -> None:
            screen.press("1")
            page.evaluate(
                "pictures.load(room.item.proposals[0]).then(() => 0)"
            )  # the page waits for the same
            assert page.evaluate("room.form.region.proposal") == 0

        proposed()
        for key, view in (
            ("o", (1, 1)),
            ("Shift+f", (0, 1)),
        ):  # as the help says: 1:1 pixels, the whole picture
            screen.press(key)
            assert tuple(page.evaluate("[pictures.exact, pictures.zoom]")) == view
        screen.press("Control+z")
        assert page.locator("#question input:checked").count() == 0
        screen.then(page.keyboard.press, "Enter")
        assert "draw a region" in page.inner_text("#wrong") and not ratings.history()
        screen.press("b")
        page.mouse.move(*at(10, 12))
        page.mouse.down()
        page.mouse.move(*at(30, 25))
        page.mouse.up()
        for tool in "he":  # what the brush adds, the eraser takes away
            screen.press(tool)
            page.mouse.click(*at(45, 45))
        proposed()
        screen.press("Control+z")
        screen.then(page.keyboard.press, "Enter")
        (stored,) = ratings.history()
        drawn = np.zeros((64, 64), bool)
        drawn[12:25, 10:30] = True
        assert stored.value["proposal"] is None and (region_of(stored.value) == drawn).all()


FAR = 8
"""Pixels that shift and an arrow go, on pictures of 64."""


def steer(screen: Screen, x: int, y: int) -> None:
    """The crosshair to a place, by arrow keys alone: far steps, then single ones."""
    at = screen.page.evaluate("[cross.x, cross.y]")
    for way, names in ((x - at[0], ("ArrowLeft", "ArrowRight")), (y - at[1], ("ArrowUp", "ArrowDown"))):
        far, near = divmod(abs(way), FAR)
        screen.press(" ".join([f"Shift+{names[way > 0]}"] * far + [names[way > 0]] * near))
    assert screen.page.evaluate("[cross.x, cross.y]") == [x, y]
    assert f"{x}, {y}" in screen.page.inner_text("#place[aria-live=polite]")


def test_what_is_wrong_is_marked_by_keyboard_alone(browser, tmp_path: Path):
    study = small_study(tmp_path / "s", ReaderTask.RANK, cases=1)
    codes = study.blocks[0].codes
    with at_first_item(browser, study) as (screen, ratings):
        page = screen.page
        screen.press("?")
        assert "arrows" in page.inner_text("#dialog") and "Space" in page.inner_text("#dialog")
        screen.press("Escape k")
        assert page.evaluate(LAID_OUT)
        assert "32, 32" in page.inner_text("#place")  # the middle
        assert page.evaluate("document.activeElement.getAttribute('role')") == "application"
        steer(screen, 10, 12)
        screen.press("Space")
        steer(screen, 30, 25)
        screen.press("Space w")  # a box; its second code
        assert "Mark 1: box" in page.inner_text("#saved")
        screen.press("Tab")  # the next picture
        steer(screen, 64, 0)
        screen.press(
            "Shift+ArrowRight Shift+ArrowUp Space Space Space Space Delete"
        )  # no farther than the corner
        steer(screen, 3, 60)
        screen.press("Space Enter")  # Enter ends what is open and saves nothing
        assert not ratings.history() and len(page.evaluate("room.marks")) == 3
        assert page.evaluate("[pictures.x, pictures.y]") == [0.5, 0.5]
        screen.press("Escape ArrowLeft")  # arrows move the picture again
        assert page.evaluate("pictures.x") < 0.5 and page.inner_text("#place") == ""
        assert page.locator("#panels [role=application]").count() == 0
        screen.press("1 2 3")
        screen.then(page.keyboard.press, "Enter")
        (stored,) = ratings.history()
    box = {"x": 10, "y": 12, "w": 20, "h": 13, "code": codes[1], "slot": 0}
    points = [{"x": x, "y": y, "w": 0, "h": 0, "code": codes[0], "slot": 1} for x, y in ((64, 0), (3, 60))]
    assert stored.value["marks"] == [box, *points] and stored.value["ranks"] == [1, 2, 3]


def test_regions_are_drawn_by_keyboard_alone(browser, tmp_path: Path):
    """A polygon, then a box, a stroke of the brush and one of the eraser; each pixel by a computation of its own."""
    corners = [(8, 7), (50, 14), (41, 52), (25, 30), (9, 45)]  # no edge meets the centre of a pixel
    centres = np.stack(np.meshgrid(np.arange(64) + 0.5, np.arange(64) + 0.5), -1)
    polygon = MatplotlibPath(corners).contains_points(centres.reshape(-1, 2)).reshape(64, 64)

    def stroke(radius: float, x0: int, x1: int, y: int) -> np.ndarray:
        """Discs around every whole x from x0 to x1."""
        return np.any([((centres - (x, y)) ** 2).sum(-1) <= radius**2 for x in range(x0, x1 + 1)], axis=0)

    study = small_study(tmp_path / "s", ReaderTask.CHOOSE_ROI, cases=1)
    with at_first_item(browser, study) as (screen, ratings):
        page = screen.page
        screen.press("k")
        for x, y in corners:
            steer(screen, x, y)
            screen.press("Space")
        screen.press("Enter")
        assert not ratings.history()  # it closed the polygon
        radius = page.evaluate("room.form.region.radius")
        expected = polygon.copy()
        for tool, (x0, x1, y) in {"b": (52, 60, 2), "h": (14, 22, 57), "e": (20, 26, 20)}.items():
            steer(screen, x0, y)
            screen.press(f"{tool} Space")
            if tool == "b":
                steer(screen, x1, y + 6)
                expected[y : y + 6, x0:x1] = True
            else:
                screen.press(" ".join(["ArrowRight"] * (x1 - x0)))
                drawn = stroke(radius, x0, x1, y)
                expected = expected | drawn if tool == "h" else expected & ~drawn
            screen.press("Space")
        screen.press("Control+z Control+y")
        screen.then(page.keyboard.press, "Enter")
        (stored,) = ratings.history()
    assert polygon.sum() > 1000 and (region_of(stored.value) == expected).all()
