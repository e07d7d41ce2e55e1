"""The report as a file and as a page: complete, repeatable, harmless, readable."""

from __future__ import annotations

import base64
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from plantain.audit.gate import thresholds
from plantain.journal import JournalReader
from plantain.pixels.encode import XMP_PACKET
from plantain.records import TaskState
from plantain.records.judging import AUDIT_IMAGES
from plantain.report.gallery import THUMBNAIL, leading, select, story_of
from plantain.report.page import ReportNumbers, figure_three, gather, write_report, write_story
from report.run_on_paper import build_run
from review.in_browser import SIZES_AND_THEMES, Screen, assert_first_sight


@pytest.fixture(scope="module")
def html(report: Path) -> str:
    return report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def task_page(paper_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the task that failed in five rounds."""
    with JournalReader.open(paper_run) as reader:
        (row,) = reader.tasks(TaskState.FAILED)
        return write_story(reader, row, tmp_path_factory.mktemp("task") / "task.html")


def test_the_same_run_in_another_folder_has_the_same_bytes(report: Path, tmp_path: Path) -> None:
    # nothing of the run's folder, its random id, its process or its clock is in the report
    twin = build_run(tmp_path / "elsewhere" / "twin")
    assert write_report(twin, tmp_path / "report.html").read_bytes() == report.read_bytes()


def test_page_has_no_address_and_a_closed_policy(html: str) -> None:
    body = re.sub(r'data:image/jpeg;base64,[^"]+', "", html)
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", body))
    # XML names, never fetched
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    policy = unescape(html)
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy


def test_images_are_small_and_edits_have_the_synthetic_mark(html: str) -> None:
    gallery = html[html.index('id="gallery"') :]
    images = re.findall(r'<img src="data:image/jpeg;base64,([^"]+)" alt="([^"]+)"', gallery)
    # 9 whole originals; 8 tasks with an edit: one enlarged original and one edit each; frames of the 5 tasks with
    # more than one round: 2 + 5 + 2 (its second round of three was refused) + 2 + 2 = 13
    assert len(images) == 9 + 2 * 8 + 13
    for data, alt in images:
        raw = base64.b64decode(data)
        assert len(raw) <= THUMBNAIL.limit
        image = Image.open(io.BytesIO(raw))
        assert max(image.size) <= THUMBNAIL.side
        if alt != "Original around the change":  # the next test counts the synthetic ones
            edited = alt.startswith("Synthetic edit") or alt == "Original image chest2"
            assert (image.info.get("xmp") == XMP_PACKET) == edited


def test_numbers_are_in_the_json(report: Path) -> None:
    numbers = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
    assert numbers["composition"]["total"]["success"] == 5
    assert numbers["judged"]["judged"] == 15
    assert "cost" not in json.dumps(numbers) and "latency" not in json.dumps(numbers)
    telemetry = json.loads(report.with_suffix(".telemetry.json").read_text(encoding="utf-8"))
    assert telemetry["costs"][1]["step"] == "edit" and telemetry["status"]["calls"]["replayed"] == 3
    assert 'href="report.telemetry.json"' in report.read_text(encoding="utf-8")


def test_every_pair_has_captions_and_an_outline(html: str) -> None:
    for pair in re.findall(r'<div class="compare">.*?<div class="beside">', html, flags=re.DOTALL):
        assert re.findall(r'<p class="label">(\w+)', pair) == ["Original", "Edited"]
        assert "(mask in green)" in pair and re.search(r'<path d="M[\dLMZ ]+"/>', pair)


def test_report_opens_with_the_outcome_and_the_next_commands(html: str) -> None:
    head = unescape(re.sub(r"<[^>]+>", "", html[: html.index("<main>")]))
    # the list in run_on_paper
    assert "5 of 10 edits accepted, 1 failed, 1 not applicable, 1 stopped, 2 pending" in head
    for command in (
        "judge audit RUN --judge offline/instruments",
        "export RUN --to release --licence CC-BY-4.0",
        "view RUN",
    ):
        assert f"plantain {command}" in head
    # The page inserts its own folder: every RUN is marked for that.
    commands = "".join(re.findall(r"<code[^>]*>plantain .*?</code>", html))
    assert commands.count("RUN") == commands.count('<span class="run">RUN</span>')


def test_trust_in_the_judge_is_one_badge_that_links_to_its_card(html: str) -> None:
    assert thresholds().rank["images"].least == AUDIT_IMAGES
    assert html.count("Judge not audited (0 of 30 images)") == 1
    assert html.count("its accuracy has not been measured") == 1
    assert '<a class="badge" href="#method">' in html and html.count('id="method"') == 1
    assert html.count("no interval") == 1


def test_head_has_six_tasks_of_all_modalities_with_the_failed_one_last(paper_run: Path) -> None:
    with JournalReader.open(paper_run) as reader:
        ids = leading(reader, select(reader, 60, seed=7).ids)
        tasks = [reader.task(task) for task in ids]
    # all five successes of the list, and the failed one
    assert [task.state for task in tasks] == ["success"] * 5 + ["failed"]
    assert {task.task.modality for task in tasks[:3]} == {"chest_xray", "brain_mri", "fundus"}


def test_synthetic_source_is_named(paper_run: Path) -> None:
    with JournalReader.open(paper_run) as reader:
        remarks = {
            (row.task.finding, row.task.direction.value): story_of(reader, row, THUMBNAIL).remark
            for row in reader.tasks()
        }
    assert remarks["Pneumothorax", "remove"].startswith("Removes a finding that no patient had")
    assert remarks["Pneumothorax", "add"] == ""


def test_large_report_has_a_sample_and_links_to_the_viewer(
    paper_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plantain.report.page.GALLERY", 3)
    text = write_report(paper_run, tmp_path / "few.html").read_text(encoding="utf-8")
    assert text.count('id="t-') == 3 and "See all in the viewer" in text
    assert "for all 10 tasks" in text


def test_fifty_tasks_take_less_than_five_megabytes(report: Path) -> None:
    # 9 tasks are shown here, up to six of them twice: five times the page is an upper bound for 50 tasks
    assert 5 * report.stat().st_size < 5_000_000


def test_hostile_text_stays_text(hostile_report: Path) -> None:
    text = hostile_report.read_text(encoding="utf-8")
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text
    assert "肺" in text and "\u202e" not in text and "\x1b" not in text
    assert text.count("<script>") == 1


@pytest.fixture
def screen(browser: Any, report: Path) -> Screen:
    """The report in a wide window."""
    screen = Screen(browser, 1280, 900)
    screen.page.goto(report.as_uri())
    return screen


@pytest.mark.parametrize(("width", "theme"), SIZES_AND_THEMES)
def test_pages_are_readable_from_disk_without_network_and_warnings(
    browser: Any, report: Path, task_page: Path, width: int, theme: str
) -> None:
    screen = Screen(browser, width, 900, color_scheme=theme)
    for file in (task_page, report):
        screen.page.goto(file.as_uri())
        assert_first_sight(screen.page, large=4.5)
        assert screen.page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert screen.page.locator("figure svg").count() == 1
    assert [url for url in screen.requests if not url.startswith(("file:", "data:"))] == []
    assert screen.complaints == []


def test_slider_uncovers_the_original_with_the_arrow_keys(screen: Screen) -> None:
    screen.page.focus(".slide >> nth=0")
    for _ in range(40):
        screen.press("ArrowLeft")
    after = "document.querySelector('.compare > div + div')"
    assert screen.page.evaluate(f"{after}.querySelector('img').style.clipPath") == "inset(0px 40% 0px 0px)"
    view = screen.page.evaluate(f"{after}.querySelector('.view').style.backgroundImage")
    assert "data:image/jpeg" in view


def test_print_shows_all_images_and_no_controls(screen: Screen) -> None:
    screen.page.emulate_media(media="print")
    assert not screen.page.locator(".slide:visible").count()
    assert screen.page.evaluate("[...document.images].every(i => i.loading !== 'lazy' && i.complete)")


def test_filters_narrow_the_gallery(screen: Screen) -> None:
    visible = screen.page.locator(".gallery article.task:visible")
    assert visible.count() == 9
    screen.page.evaluate("document.querySelector('a[data-outcome=failed]').click()")
    assert visible.count() == 1
    assert screen.page.inner_text("output") == "1 of 9 shown"
    screen.page.evaluate("document.querySelector('button[type=reset]').click()")
    visible.nth(8).wait_for()
    screen.page.select_option("[name=modality]", "chest_xray")
    assert visible.count() == 5


def test_page_works_without_scripts(browser: Any, report: Path) -> None:
    page = Screen(browser, 1280, 900, java_script_enabled=False).page
    page.goto(report.as_uri())
    tasks = page.locator(".gallery article.task:not([hidden])")
    assert tasks.count() == 9 and tasks.first.bounding_box()["height"] > 100
    assert not page.locator("form.filters").is_visible()


def test_hostile_text_runs_nothing(browser: Any, hostile_report: Path) -> None:
    screen = Screen(browser, 400, 900)
    screen.page.goto(hostile_report.as_uri())
    assert screen.page.evaluate("document.scripts.length") == 1
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 400
    screen.page.select_option("[name=outcome]", "failed")
    assert screen.complaints == []


@pytest.fixture(scope="module")
def numbers(paper_run: Path) -> ReportNumbers:
    with JournalReader.open(paper_run) as reader:
        return gather(reader)


def test_figure_is_wellformed_repeatable_and_follows_the_page(numbers: ReportNumbers) -> None:
    svg = figure_three(numbers.findings)
    assert svg == figure_three(numbers.findings)
    root = ElementTree.fromstring(svg)
    assert root.attrib["viewBox"] and "width" not in root.attrib and "height" not in root.attrib
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids)) and all(i.startswith("figure3-") for i in ids)
    assert all(target in ids for target in re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    # every colour is the page's own variable, so that the figure turns dark with it
    assert set(re.findall(r"(?:fill|stroke): *(#\w+)", svg)) <= {"#000000"}
