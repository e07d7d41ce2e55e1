"""Takes the gallery's pictures anew: `make gallery`. Makes the demos in a folder, opens their pages in chromium.

The demos are gone on with where they are, so that a second time takes seconds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1200, 780
PICTURES = {
    # picture: page below the folder, what is scrolled to, dark
    "report-tables": ("demo/run/report.html", "", False),
    "report-findings": ("demo/run/report.html", "#findings", True),
    "leaderboard": ("bench-demo/leaderboard/leaderboard.html", "#table", False),
    "site": ("site/index.html", "", False),
}


def plantain(*words: str, folder: Path) -> None:
    """One command, in the folder."""
    subprocess.run(
        [sys.executable, "-m", "plantain", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )


def take(page: Page, folder: Path, name: str) -> None:
    """One picture, in 128 colours: pages have few, and radiographs are grey."""
    file, anchor, dark = PICTURES[name]
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(f"{(folder / file).resolve().as_uri()}{anchor}")
    page.wait_for_timeout(300)
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
    print(f"{path.relative_to(IMAGES.parent.parent)}: {path.stat().st_size // 1024} KB")


def main(folder: Path) -> None:
    """All of them."""
    folder.mkdir(parents=True, exist_ok=True)
    plantain("demo", "demo", folder=folder)
    plantain("bench", "demo", "bench-demo", folder=folder)
    if not (folder / "site").exists():
        (folder / "site").symlink_to(IMAGES.parent.parent / "build/site")
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name in PICTURES:
            take(page, folder, name)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/gallery"))
