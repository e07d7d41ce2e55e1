"""The reading room in a real browser: 300 items by keyboard alone, three readers at once, and how soon a case appears.

Chromium by Playwright; pictures of 1024 x 1024. Beside each time stands a bare page's: fetch, decode and draw the same
pictures, nothing else. Targets: no error and no request to elsewhere; a case under 100 ms from cache and 400 ms cold.

Run: python benchmarks/review_browser.py [--items 300] [--shots FOLDER]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import skimage.data
import uvicorn
from playwright.sync_api import Page, sync_playwright

from plantain.review.freezing import Wanted, new_study
from plantain.review.ratings import Ratings
from plantain.review.room.server import create_app
from plantain.review.serving import listen
from plantain.review.sources import Material
from plantain.review.study import ORIGINAL, ReaderTask, Study
from plantain.rubrics import MED_BANANA

TASKS = (
    ReaderTask.ACCEPT,
    ReaderTask.RATE,
    ReaderTask.PAIR,
    ReaderTask.REAL_OR_EDITED,
    ReaderTask.WHICH_FINDING,
)
KEYS = {"accept": "1 2 3 4", "rate": "7 t 0 5", "pair": "1", "real-or-edited": "2", "which-finding": "3"}
READERS, TIMES = 3, 20
CACHED_MS, COLD_MS = 100.0, 400.0

SHOWN = """async ([block, position, cold]) => {
  if (cold) { room.ahead.clear(); pictures.loaded.clear(); }
  else {
    const item = await fetchCase(block, position);
    await Promise.all(picturesOf(item).map((one) => pictures.load(one.url)));
  }
  const begun = performance.now();
  await show(block, position);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - begun;
}"""
BARE = """async ([block, position, cold]) => {
  const item = await ask(`/api/case/${block}/${position}`), urls = picturesOf(item).map((one) => one.url);
  const read = (url) => fetch(url).then((answer) => answer.blob()).then(createImageBitmap);
  const kept = cold ? null : await Promise.all(urls.map(read)), canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1024; document.body.append(canvas);
  const begun = performance.now();
  for (const one of kept ?? await Promise.all(urls.map(read))) canvas.getContext("2d").drawImage(one, 0, 0);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const spent = performance.now() - begun;
  canvas.remove();
  return spent;
}"""


def study_of(folder: Path, items: int) -> Study:
    """Fundus photographs with and without a disc, two models."""
    retina = skimage.data.retina()[190:1214, 190:1214]

    def picture(case: int, model: int) -> np.ndarray:
        pixels = np.roll(retina, 7 * case, axis=1).copy()
        if model:
            cv2.circle(pixels, (300 + 9 * case % 400, 500 + 40 * model), 40, (250, 235, 170), -1)
        return pixels

    found = [
        Material(
            f"t{case}", f"i{case}", "all", f"p{case}", "fundus", "Diabetes", "add", "Add a hard exudate.",
            {name: lambda c=case, m=m: picture(c, m) for m, name in enumerate((ORIGINAL, "a", "b"))},
        )
        for case in range(max(2, items // 8))
    ]  # fmt: skip
    return new_study(folder, found, ["drawn"], Wanted("In the browser", 1, TASKS, MED_BANANA))


def then(page: Page, key: str) -> None:
    """Presses a key and waits until the page has shown something new."""
    turn = page.evaluate("document.body.dataset.turn ?? ''")
    page.keyboard.press(key)
    page.wait_for_selector(f'body[data-turn]:not([data-turn="{turn}"])', state="attached", timeout=60_000)


def step(page: Page) -> bool | None:
    """One answer, or one sheet passed by; None at the end. True: an answer was given."""
    if not page.evaluate("document.querySelector('#sheet').hidden"):
        if page.inner_text("#sheet h1") == "Thank you":
            return None
        then(page, "Enter")
        return False
    for key in KEYS[page.evaluate("room.item.task")].split():
        page.keyboard.press(key)
    then(page, "Enter")
    assert page.inner_text("#wrong") == ""
    return True


def times(page: Page, block: str, cold: bool) -> tuple[float, float]:
    """Medians in ms: the room's, and a bare page's, in turn."""
    client = page.context.new_cdp_session(page)
    client.send("Network.setCacheDisabled", {"cacheDisabled": cold})
    ours, bare = [], []
    for n in range(TIMES):
        ours.append(page.evaluate(SHOWN, [block, n % 2, cold]))
        bare.append(page.evaluate(BARE, [block, n % 2, cold]))
    return statistics.median(ours), statistics.median(bare)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--shots", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        study = study_of(Path(folder) / "study", asked.items)
        ratings = Ratings.open(study)
        held = listen("127.0.0.1", 0)
        app = create_app(study, ratings)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [held]})
        thread.start()
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        bad: list[str] = []
        pages = []
        for size in ((1280, 800), (1280, 800), (834, 1112)):
            page = browser.new_context(viewport={"width": size[0], "height": size[1]}).new_page()
            page.on("console", lambda said: bad.append(said.text))
            page.on("pageerror", lambda error: bad.append(str(error)))
            page.on("request", lambda r: None if r.url.startswith((address, "blob:")) else bad.append(r.url))
            page.goto(f"{address}/enter#{ratings.invite()[1]}")
            page.wait_for_selector("#sheet canvas")
            then(page, "y")
            pages.append(page)
        then(pages[0], "Enter")
        block = study.blocks[0].id
        found: dict[bool, Any] = {cold: times(pages[0], block, cold) for cold in (False, True)}
        given, begun, open_pages = [0] * READERS, time.monotonic(), set(range(READERS))
        while open_pages:  # three readers in turn, key by key
            for number in sorted(open_pages):
                told = step(pages[number])
                if told is None:
                    open_pages.discard(number)
                given[number] += bool(told)
                if asked.shots and told and given[number] == 3:
                    pages[number].screenshot(path=str(asked.shots / f"reader-{number}.png"))
        spent = time.monotonic() - begun
        stored = [len(ratings.current(reader.code)) for reader in ratings.readers()]
        twice = len(ratings.history()) - sum(stored)
        browser.close()
        server.should_exit = True
        thread.join()
        ratings.close()
    items = sum(len(block.items) for block in study.blocks)
    print(
        f"{READERS} readers at once, {items} items each by keyboard: {given} given, {stored} stored, {twice} twice"
    )
    print(f"{1000 * spent / sum(given):.0f} ms an answer, the driver's key presses included")
    print(f"complaints, and requests to elsewhere: {len(bad)} {bad[:3]}")
    for cold, (ours, bare) in found.items():
        print(
            f"a case {'cold' if cold else 'from cache'}: {ours:.0f} ms, a bare page {bare:.0f}; ratio {ours / bare:.1f}"
        )
    good = given == stored == [items] * READERS and not bad and not twice
    return 0 if good and found[False][0] < CACHED_MS and found[True][0] < COLD_MS else 1


if __name__ == "__main__":
    sys.exit(main())
