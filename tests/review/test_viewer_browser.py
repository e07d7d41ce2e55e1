"""The viewer in a real browser: by keyboard alone, at two sizes, live, with hostile text; nothing from outside."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from pathlib import Path

import pytest

from plantain.journal import Journal, JournalReader
from plantain.records import TaskState
from report.run_on_paper import build_run
from review.in_browser import LAID_OUT

playwright = pytest.importorskip("playwright.sync_api")
uvicorn = pytest.importorskip("uvicorn")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")]


@pytest.fixture
def served(tmp_path: Path):
    from plantain.review.serving import listen
    from plantain.review.viewer.run_view import RunView
    from plantain.review.viewer.server import create_viewer

    run = build_run(tmp_path / "run", hostile=True)
    held = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create_viewer(RunView(run)), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]})
    thread.start()
    yield run, f"http://127.0.0.1:{held.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_a_run_by_keyboard_at_two_sizes_and_live(served):
    run, address = served
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        wrong: list[str] = []
        page.on("console", lambda said: wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith((address, "blob:")) else wrong.append(r.url))
        page.on("response", lambda r: wrong.append(r.url) if r.status >= 400 else None)
        page.on("dialog", lambda dialog: wrong.append(dialog.message))

        page.goto(address + "/")
        page.wait_for_selector("body[data-filled]")
        assert page.locator("select[name=finding] option").count() == 11
        page.keyboard.press("d")  # only where judges differ
        page.wait_for_url("**/?differ=any")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_selector('body[data-shown="0.2"]')
        assert page.evaluate(LAID_OUT)
        page.keyboard.press("[")
        page.wait_for_selector('body[data-shown="0.1"]')
        assert "show=0.1" in page.url  # what is shown can be passed on as a link
        page.goto(page.url)
        page.wait_for_selector('body[data-shown="0.1"]')
        page.keyboard.press("+")
        for key, shown in (
            ("]", "0.2"),
            ("[", "0.1"),
            ("]", "0.2"),
            ("[", "0.1"),
        ):  # to and fro, with the view kept
            page.keyboard.press(key)
            page.wait_for_selector(f'body[data-shown="{shown}"]')
            assert page.locator("#panels figure").count() == 2 and page.evaluate("pictures.zoom") == 1.25
        page.keyboard.press("d")
        page.wait_for_selector("#panels figure:nth-child(3)")
        page.keyboard.down("f")
        page.wait_for_selector("#panels figure:nth-child(2) figcaption:text-is('Original')")
        page.keyboard.up("f")
        page.wait_for_selector("#panels figure:nth-child(2) figcaption:text-is('Round 1')")
        page.keyboard.press("u")
        page.wait_for_url("**/?differ=any")
        page.keyboard.press("/")
        page.keyboard.type("chest2")
        page.keyboard.press("Enter")
        page.wait_for_url("**text=chest2**")
        if shots := os.environ.get("PLANTAIN_SHOTS"):
            page.screenshot(path=f"{shots}/viewer.png")

        page.goto(address + "/?order=recent")
        page.wait_for_selector("body[data-filled]")
        with JournalReader.open(run) as reader:
            pending = next(row.id for row in reader.tasks(TaskState.PENDING) if reader.calls(row.id))
        assert page.locator(f"#t{pending}.pending").count() == 1

        alone = page.context.new_page()
        alone.goto(f"{address}/task/{pending}")

        async def write() -> None:
            async with Journal.open(run) as journal:
                await journal.close_task(pending, TaskState.STOPPED, 1, "by hand")

        worker = threading.Thread(target=lambda: asyncio.run(write()))
        worker.start()
        worker.join()
        page.wait_for_selector(f"#t{pending}.stopped", timeout=20_000)  # the page saw it by itself
        alone.bring_to_front()  # a page out of sight does not ask
        alone.wait_for_selector(".crumbs .badge.stopped", timeout=20_000)
        assert alone.locator("#panels figure").count() > 0

        page.set_viewport_size({"width": 834, "height": 1112})
        for path in ("/", f"/task/{pending}", "/judges", "/calls"):
            page.goto(address + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 834
        assert wrong == []
        browser.close()
