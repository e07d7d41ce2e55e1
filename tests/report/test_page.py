"""The report as a file and as a page: complete, repeatable, harmless, readable."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from PIL import Image

from pages.browser import CHROMIUM, Page, open_browser
from plantain.pixels.encode import XMP_PACKET
from plantain.report.gallery import THUMBNAIL
from plantain.report.page import write_report
from report.run_on_paper import build_run

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def html(report: Path) -> str:
    return report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def test_the_same_run_in_another_folder_has_the_same_bytes(report: Path, tmp_path: Path) -> None:
    # nothing of the run's folder, its random id, its process or its clock is in the report
    twin = build_run(tmp_path / "elsewhere" / "twin")
    assert write_report(twin, tmp_path / "report.html").read_bytes() == report.read_bytes()


def test_page_holds_no_address_and_a_closed_policy(html: str) -> None:
    body = re.sub(r'data:image/jpeg;base64,[^"]+', "", html)
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", body))
    # XML names, never fetched
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    policy = unescape(html)
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy


def test_pictures_are_small_and_edits_carry_the_synthetic_mark(html: str) -> None:
    pictures = re.findall(r'<img src="data:image/jpeg;base64,([^"]+)" alt="([^"]+)"', html)
    # 10 tasks shown; attempts with an edit: 2 + 1 + 5 + 2 + 1 + 2 + 2 + 1 + 1 = 17 with a difference map each
    assert len(pictures) == 10 + 2 * 17
    for data, alt in pictures:
        raw = base64.b64decode(data)
        assert len(raw) <= THUMBNAIL.limit
        picture = Image.open(io.BytesIO(raw))
        assert max(picture.size) <= THUMBNAIL.side
        edited = alt.startswith("Synthetic edit") or alt == "Original image chest2"
        assert (picture.info.get("xmp") == XMP_PACKET) == edited


def test_numbers_are_in_the_json(report: Path) -> None:
    numbers = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
    assert numbers["composition"]["total"]["success"] == 5
    assert numbers["judged"]["judged"] == 15
    assert "cost" not in json.dumps(numbers) and "latency" not in json.dumps(numbers)
    telemetry = json.loads(report.with_suffix(".telemetry.json").read_text(encoding="utf-8"))
    assert telemetry["costs"][1]["step"] == "edit" and telemetry["status"]["calls"]["replayed"] == 3


def test_every_picture_of_the_gallery_has_a_caption(html: str) -> None:
    stories = re.findall(r'<div class="story">.*?</article>', html, flags=re.DOTALL)
    pictures = [text for story in stories for text in re.split(r"<img ", story)[1:]]
    captions = [re.match(r'[^>]*><p class="label">(\w+)', text) for text in pictures]
    assert all(captions)
    assert {found[1] for found in captions if found} == {"Original", "Edited", "Changed"}


def test_hostile_text_stays_text(hostile_report: Path) -> None:
    text = hostile_report.read_text(encoding="utf-8")
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text
    assert "肺" in text and "\u202e" not in text and "\x1b" not in text
    assert text.count("<script>") == 1


@needs_chromium
@pytest.mark.parametrize("width", [1280, 400])
def test_page_opens_from_disk_without_network_or_complaint(report: Path, page: Page, width: int) -> None:
    page.go(report, width)
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert page.complaints == []
    assert page.evaluate("document.querySelectorAll('svg').length") == 5
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@needs_chromium
def test_filters_narrow_the_gallery(report: Path, page: Page) -> None:
    visible = "[...document.querySelectorAll('article.task')].filter(t => t.offsetParent !== null).length"
    page.go(report, 1280)
    assert page.evaluate(visible) == 10
    page.evaluate("document.querySelector('a[data-outcome=failed]').click()")
    assert page.evaluate(visible) == 1
    assert page.evaluate("document.querySelector('output').textContent") == "1 of 10 shown"
    page.evaluate("document.querySelector('button[type=reset]').click()")
    page.evaluate("new Promise(done => setTimeout(done, 50))")
    page.evaluate(
        "document.forms[0].elements.modality.value = 'chest_xray';"
        "document.forms[0].dispatchEvent(new Event('change'))"
    )
    assert page.evaluate(visible) == 5


@needs_chromium
def test_page_works_without_scripts(report: Path, page: Page) -> None:
    page.go(report, 1280, scripts=False)
    tree = page.send("DOM.getDocument")["root"]["nodeId"]
    tasks = page.send("DOM.querySelectorAll", nodeId=tree, selector="article.task:not([hidden])")["nodeIds"]
    form = page.send("DOM.querySelector", nodeId=tree, selector="form.filters")["nodeId"]
    with pytest.raises(AssertionError, match="Could not compute box model"):
        page.send("DOM.getBoxModel", nodeId=form)
    assert len(tasks) == 10
    assert page.send("DOM.getBoxModel", nodeId=tasks[0])["model"]["height"] > 100


@needs_chromium
def test_hostile_text_runs_nothing(hostile_report: Path, page: Page) -> None:
    page.go(hostile_report, 400)
    assert page.complaints == []
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.evaluate("document.forms[0].elements.outcome.value = 'failed'")
    assert page.complaints == []
