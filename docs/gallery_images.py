"""Make the images of README and gallery from the demos: `make gallery`.

The demos are resumed, so a second call takes seconds.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from reference_from_code.files import EXAMPLES, example_name

from plantain import Run
from plantain.audit.images import AuditImage, package_images
from plantain.audit.planted_defects import CleanEdit
from plantain.findings import load_taxonomy
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.editor import render_instruction
from plantain.offline.language import compose, read_instruction
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Direction
from plantain.review.ratings import Ratings
from plantain.review.serving import listen
from plantain.review.study import Study, open_study
from plantain.review.web.server import create_app

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from contact_sheet import accepted, drawings, pair

IMAGES = Path(__file__).parent / "images"
SITE = IMAGES.parent.parent / "build/site"
WIDTH, HEIGHT, TALL = 1200, 780, 1230
TELEPHONE = 400
SCREENSHOTS = {
    # name: page below the folder, anchor, dark mode
    "report": ("demo/run/report.html", "", False),  # taller: headline and pairs
    "report-tables": ("demo/run/report.html", "#composition", False),
    "report-findings": ("demo/run/report.html", "#findings", True),
    "leaderboard": ("bench-demo/leaderboard/leaderboard.html", "#table", False),
    "site": (str(SITE / "tutorial/3-pilot.html"), "", False),
}
NARROW = (
    ("demo/run/report.html", "", False),
    ("bench-demo/leaderboard/leaderboard.html", "#table", True),
    (str(SITE / "tutorial/2-catalogue.html"), "", False),
)
"""Pages of `narrow.png`; a reader study in dark mode follows."""
DRAWN = 6
"""Drawings of a finding from which the first accepted edit is shown."""


def plantain(*words: str, folder: Path) -> None:
    """Run one command in the folder."""
    subprocess.run(
        [sys.executable, "-m", "plantain", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )


def screenshot(page: Page, folder: Path, file: str, anchor: str, dark: bool) -> bytes:
    """Return a screenshot of a page as PNG."""
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(f"{(folder / file).resolve().as_uri()}{anchor}")
    page.wait_for_timeout(300)
    # the path of the demo is private
    page.evaluate(
        "for (const run of document.querySelectorAll('.command .run')) run.textContent = 'demo-run'"
    )
    return page.screenshot()


def shrink(path: Path) -> None:
    """Reduce to 256 colours, 64 of them for the few coloured dots and lines."""
    image = Image.open(path).convert("RGB")
    pixels = np.asarray(image).astype(int)
    coloured = Image.fromarray(pixels[np.ptp(pixels, axis=2) > 40][None].astype(np.uint8))
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours(image, 192) + colours(coloured, 64))
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


def colours(image: Image.Image, most: int) -> list[int]:
    """Return the palette of an image: red, green and blue of each colour."""
    return (image.quantize(most).getpalette() or [])[: 3 * most]


@contextmanager
def served(study: Study) -> Iterator[str]:
    """Serve a study; yield the link of a new reader."""
    ratings, socket = Ratings.open(study), listen("127.0.0.1", 0)
    config = uvicorn.Config(create_app(study, ratings), log_level="warning", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/enter#{ratings.invite()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        ratings.close()


def press(page: Page, key: str) -> None:
    """Press a key and wait for the next item."""
    turn = page.evaluate("document.body.dataset.turn ?? ''")
    page.keyboard.press(key)
    page.wait_for_selector(f'body[data-turn]:not([data-turn="{turn}"])', state="attached")


def read_pneumothorax(page: Page, link: str) -> bytes:
    """Return a screenshot of the first pneumothorax to accept or reject, with its difference."""
    page.goto(link)
    page.wait_for_selector("#sheet button")
    press(page, "Enter")
    while "Add: Pneumothorax" not in page.inner_text("#about"):
        page.keyboard.press("a")
        press(page, "Enter")
    page.keyboard.press("d")
    page.wait_for_timeout(300)
    return page.screenshot()


def keep(name: str, *shown: bytes) -> None:
    """Save screenshots side by side as one image."""
    images = [Image.open(io.BytesIO(one)).convert("RGB") for one in shown]
    gap = 24
    width = sum(one.width for one in images) + gap * (len(images) - 1)
    joined = Image.new("RGB", (width, max(one.height for one in images)), "white")
    left = 0
    for one in images:
        joined.paste(one, (left, 0))
        left += one.width + gap
    path = IMAGES / f"{name}.png"
    joined.save(path)
    shrink(path)


STRIP = {"chest_xray": "Pleural Effusion", "brain_mri": "meningioma", "fundus": "AMD"}
"""Modality -> finding, from left to right in `strip.png`."""

WINDOW = 576
"""Pixels of each crop around the change."""


def strip(run: Run, side: int = 220, gap: int = 6) -> Image.Image:
    """Return original, edit and changed region of one success of each modality, side by side."""
    sheet = Image.new("RGB", (9 * side + 8 * gap, side), "white")
    for place, (modality, finding) in enumerate(STRIP.items()):
        task = next(
            one
            for one in run.tasks("success")
            if (one.modality, one.direction.value) == (modality, "add")
            and finding.lower() in one.finding.lower()
        )
        edited = next(one.edited for one in reversed(task.attempts) if one.edited)
        before, after = (
            np.asarray(Image.open(io.BytesIO(task.read_image(sha256))).convert("RGB"))
            for sha256 in (task.image.prepared_sha256, edited)
        )
        change = cv2.medianBlur(
            (np.abs(before.astype(int) - after).max(axis=2) > 16).astype(np.uint8) * 255, 5
        )
        middle = [int(where.mean()) for where in np.nonzero(change)]
        top, left = (min(max(0, m - WINDOW // 2), before.shape[0] - WINDOW) for m in middle)
        for column, shown in enumerate((before, after, change)):
            tile = Image.fromarray(shown[top : top + WINDOW, left : left + WINDOW]).resize((side, side))
            sheet.paste(tile, ((3 * place + column) * (side + gap), 0))
    return sheet


def removed(drawn: CleanEdit) -> CleanEdit | None:
    """Return the editor's removal of a drawn finding; None if it finds nothing to remove."""
    instruction = compose(replace(drawn.intent, direction=Direction.REMOVE), drawn.finding)
    image, original = replace(drawn.image, synthetic=True), decode(encode_source(drawn.edited))
    try:
        rendering = render_instruction(original, instruction, image, 7)
    except CannotShow:
        return None
    return replace(
        drawn,
        image=image,
        direction=Direction.REMOVE,
        intent=read_instruction(instruction, [drawn.finding]),
        instruction=instruction,
        original=original,
        edited=decode(encode_jpeg(rendering.pixels)),
        mask=rendering.mask,
        support=rendering.support,
    )


def first_accepted(edits: list[CleanEdit]) -> CleanEdit | None:
    """Return the first edit that the offline judge accepts, else the first; None without edits."""
    return next((edit for edit in edits if accepted(edit)), edits[0] if edits else None)


def draw_findings(images: list[AuditImage]) -> None:
    """Save one addition of each finding and, where the editor can do it, one removal."""
    shutil.rmtree(EXAMPLES, ignore_errors=True)
    EXAMPLES.mkdir()
    for finding in load_taxonomy().findings:
        if finding.draw:
            added = list(drawings(finding, images, DRAWN))
            taken = [edit for one in added if (edit := removed(one)) is not None and edit.mask.any()]
            for direction, edits in (("add", added), ("remove", taken)):
                if (edit := first_accepted(edits)) is not None:
                    path = EXAMPLES / example_name(finding, direction)
                    Image.fromarray(pair(edit)).save(path, quality=82, optimize=True)


def main(folder: Path) -> None:
    """Make all images."""
    draw_findings(package_images())
    folder.mkdir(parents=True, exist_ok=True)
    plantain("demo", "demo", folder=folder)
    plantain("bench", "demo", "bench-demo", folder=folder)
    plantain("review", "demo", "review-demo", folder=folder)
    strip(Run(folder / "demo/run")).save(IMAGES / "strip.png", optimize=True)
    study = open_study(next((folder / "review-demo").rglob("study.json")).parent)
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name, shown in SCREENSHOTS.items():
            page.set_viewport_size({"width": WIDTH, "height": TALL if name == "report" else HEIGHT})
            keep(name, screenshot(page, folder, *shown))
        page.emulate_media(color_scheme="light")
        with served(study) as link:
            keep("review", read_pneumothorax(page, link))
        narrow = browser.new_page(viewport={"width": TELEPHONE, "height": HEIGHT})
        shown = [screenshot(narrow, folder, *one) for one in NARROW]
        narrow.emulate_media(color_scheme="dark")
        with served(study) as link:
            keep("narrow", *shown, read_pneumothorax(narrow, link))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/gallery"))
