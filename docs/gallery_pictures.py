"""Takes the gallery's pictures anew: `make gallery`. Makes the demos in a folder, opens their pages in chromium.

The demos are gone on with where they are, so that a second time takes seconds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from plantain.review.ratings import Ratings
from plantain.review.room.server import create_app
from plantain.review.serving import listen
from plantain.review.study import Study

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1200, 780
PICTURES = {
    # picture: page below the folder, what is scrolled to, dark
    "report": ("demo/run/report.html", "#gallery", False),
    "report-tables": ("demo/run/report.html", "", False),
    "report-findings": ("demo/run/report.html", "#findings", True),
    "leaderboard": ("bench-demo/leaderboard/leaderboard.html", "#table", False),
    "site": ("site/index.html", "", False),
}
SHEETS = ("chest_xray-add", "brain_mri-add", "fundus-add")


def plantain(*words: str, folder: Path) -> None:
    """One command, in the folder."""
    subprocess.run(
        [sys.executable, "-m", "plantain", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )


def take(page: Page, folder: Path, name: str) -> None:
    """One picture of a page."""
    file, anchor, dark = PICTURES[name]
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(f"{(folder / file).resolve().as_uri()}{anchor}")
    page.wait_for_timeout(300)
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    shrink(path)


def shrink(path: Path) -> None:
    """In 128 colours: pages have few, and radiographs are grey."""
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
    print(f"{path.relative_to(IMAGES.parent.parent)}: {path.stat().st_size // 1024} KB")


@contextmanager
def room(study: Study) -> Iterator[str]:
    """The reading room of a study, as a new reader enters it: the link of the invitation."""
    ratings, held = Ratings.open(study), listen("127.0.0.1", 0)
    config = uvicorn.Config(create_app(study, ratings), log_level="warning", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{held.getsockname()[1]}/enter#{ratings.invite()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        ratings.close()


def take_room(page: Page, link: str) -> None:
    """The first edit that is to be accepted or rejected, with its difference."""
    page.goto(link)
    page.wait_for_selector("#sheet canvas")
    for key in ("y", "Enter"):
        turn = page.evaluate("document.body.dataset.turn ?? ''")
        page.keyboard.press(key)
        page.wait_for_selector(f'body[data-turn]:not([data-turn="{turn}"])', state="attached")
    page.keyboard.press("d")
    page.wait_for_timeout(300)
    path = IMAGES / "review.png"
    page.screenshot(path=path)
    shrink(path)


def main(folder: Path) -> None:
    """All of them."""
    folder.mkdir(parents=True, exist_ok=True)
    plantain("demo", "demo", folder=folder)
    plantain("bench", "demo", "bench-demo", folder=folder)
    plantain("review", "demo", "review-demo", "--no-serve", folder=folder)
    sheet = IMAGES.parent.parent / "benchmarks/contact_sheet.py"
    subprocess.run(
        [sys.executable, sheet, "--each", "1", "--to", folder / "sheet"], check=True, stdout=subprocess.DEVNULL
    )
    for name in SHEETS:
        shrink(shutil.copy(folder / "sheet" / f"{name}.png", IMAGES / f"sheet-{name}.png"))
    if not (folder / "site").exists():
        (folder / "site").symlink_to(IMAGES.parent.parent / "build/site")
    study = next((folder / "review-demo").rglob("study.json")).parent
    with sync_playwright() as running, room(Study.open(study)) as link:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name in PICTURES:
            take(page, folder, name)
        take_room(page, link)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/gallery"))
