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
from pages.first_sight import look
from plantain.audit.gate import thresholds
from plantain.journal import JournalReader
from plantain.pixels.encode import XMP_PACKET
from plantain.records import TaskState
from plantain.records.judging import AUDIT_IMAGES
from plantain.report.gallery import THUMBNAIL, leading, select
from plantain.report.page import write_report, write_story
from report.run_on_paper import build_run

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def html(report: Path) -> str:
    return report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def task_page(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the task that failed in five rounds."""
    with JournalReader.open(run) as reader:
        (row,) = reader.tasks(TaskState.FAILED)
        return write_story(reader, row, tmp_path_factory.mktemp("task") / "task.html")


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
    gallery = html[html.index('id="gallery"') :]
    pictures = re.findall(r'<img src="data:image/jpeg;base64,([^"]+)" alt="([^"]+)"', gallery)
    # 10 whole originals; 9 tasks with an edit: one enlarged original and one edit each; frames of the 5 tasks with
    # more than one round: 2 + 5 + 2 (its second round of three was refused) + 2 + 2 = 13
    assert len(pictures) == 10 + 2 * 9 + 13
    for data, alt in pictures:
        raw = base64.b64decode(data)
        assert len(raw) <= THUMBNAIL.limit
        picture = Image.open(io.BytesIO(raw))
        assert max(picture.size) <= THUMBNAIL.side
        if alt != "Original around the change":  # which of them is synthetic, the next test counts
            edited = alt.startswith("Synthetic edit") or alt == "Original image chest2"
            assert (picture.info.get("xmp") == XMP_PACKET) == edited


def test_numbers_are_in_the_json(report: Path) -> None:
    numbers = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
    assert numbers["composition"]["total"]["success"] == 5
    assert numbers["judged"]["judged"] == 15
    assert "cost" not in json.dumps(numbers) and "latency" not in json.dumps(numbers)
    telemetry = json.loads(report.with_suffix(".telemetry.json").read_text(encoding="utf-8"))
    assert telemetry["costs"][1]["step"] == "edit" and telemetry["status"]["calls"]["replayed"] == 3


def test_every_pair_has_captions_and_an_outline(html: str) -> None:
    for pair in re.findall(r'<div class="compare">.*?<div class="beside">', html, flags=re.DOTALL):
        assert re.findall(r'<p class="label">(\w+)', pair) == ["Original", "Edited"]
        assert "(mask in green)" in pair and re.search(r'<path d="M[\dLMZ ]+"/>', pair)


def test_report_opens_with_the_outcome_and_the_next_commands(html: str) -> None:
    head = unescape(re.sub(r"<[^>]+>", "", html[: html.index("<main>")]))
    # the list in run_on_paper, without the control task
    assert "5 of 10 edits accepted, 1 failed, 1 not applicable, 1 stopped, 2 pending" in head
    for command in (
        "judge audit RUN --judge offline/instruments",
        "export RUN --to release --licence CC-BY-4.0",
        "view RUN",
    ):
        assert f"plantain {command}" in head
    # The page puts its own folder in: every RUN is marked for that.
    commands = "".join(re.findall(r"<code[^>]*>plantain .*?</code>", html))
    assert commands.count("RUN") == commands.count('<span class="run">RUN</span>')


def test_trust_in_the_judge_is_one_badge_that_links_to_its_card(html: str) -> None:
    assert thresholds().rank["images"].least == AUDIT_IMAGES
    assert html.count("Judge not audited (0 of 30 images)") == 1
    assert html.count("its accuracy has not been measured") == 1
    assert '<a class="badge" href="#method">' in html and html.count('id="method"') == 1
    assert html.count("no interval") == 1


def test_the_head_has_six_tasks_of_all_modalities_and_the_failed_one_last(run: Path) -> None:
    with JournalReader.open(run) as reader:
        ids = leading(reader, select(reader, 60, seed=7).ids)
        tasks = [reader.task(task) for task in ids]
    # all five successes of the list (the control is none), and the one that failed
    assert [task.state for task in tasks] == ["success"] * 5 + ["failed"]
    assert {task.task.modality for task in tasks[:3]} == {"chest_xray", "brain_mri", "fundus"}


def test_a_large_report_has_a_sample_and_leads_to_the_viewer(run: Path, tmp_path: Path) -> None:
    text = write_report(run, tmp_path / "few.html", gallery=3).read_text(encoding="utf-8")
    assert text.count('id="t-') == 3 and "See all in the viewer" in text
    assert "for all 10 tasks" in text


def test_fifty_tasks_take_less_than_five_megabytes(report: Path) -> None:
    # 10 tasks are shown here, up to six of them twice: five times the page bounds one of 50
    assert 5 * report.stat().st_size < 5_000_000


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
    assert page.evaluate("document.querySelectorAll('figure svg').length") == 2
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@needs_chromium
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_first_sight(report: Path, task_page: Path, page: Page, width: int, theme: str) -> None:
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    for file in (report, task_page):
        page.go(file, width)
        look(page, width)


@needs_chromium
def test_slider_uncovers_the_original_with_the_arrow_keys(report: Path, page: Page) -> None:
    page.go(report, 1280)
    page.evaluate("document.querySelector('.slide').focus()")
    for _ in range(40):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key="ArrowLeft", windowsVirtualKeyCode=37)
    after = "document.querySelector('.compare > div + div')"
    assert page.evaluate(f"{after}.querySelector('img').style.clipPath") == "inset(0px 40% 0px 0px)"
    assert "data:image/jpeg" in str(page.evaluate(f"{after}.querySelector('.view').style.backgroundImage"))


@needs_chromium
def test_print_shows_all_images_and_no_controls(report: Path, page: Page) -> None:
    page.go(report, 1280)
    page.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert page.evaluate("getComputedStyle(document.querySelector('.slide')).display") == "none"
        assert page.evaluate("[...document.images].every(i => i.loading !== 'lazy' && i.complete)")
    finally:
        page.send("Emulation.setEmulatedMedia", media="")


@needs_chromium
def test_filters_narrow_the_gallery(report: Path, page: Page) -> None:
    visible = (
        "[...document.querySelectorAll('.gallery article.task')].filter(t => t.offsetParent !== null).length"
    )
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
    tasks = page.send("DOM.querySelectorAll", nodeId=tree, selector=".gallery article.task:not([hidden])")[
        "nodeIds"
    ]
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
