"""Every finding added and removed on one page, for a radiologist to criticise, with the offline judge's verdict.

Each row: the image before, the edited one, what changed (orange brighter, blue darker), what was asked, what the judge
says. Removal starts from an image to which the finding was added before, since no image with disease comes along; a
catalogue of one's own can be named for more.

    python benchmarks/contact_sheet.py [--to bench-out/contact-sheet] [--images CATALOGUE] [--each 2] [--finding NAME]
"""

from __future__ import annotations

import argparse
import html
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import cv2
import numpy as np

from plantain.audit.pictures import SELLA_CUTS
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy, sides_on, why_not_shown, zones_on
from plantain.offline.editor import render_instruction
from plantain.offline.judge import judge_encoded
from plantain.offline.language import Intent, compose
from plantain.offline.rendering import CannotShow
from plantain.pages.publishing import write_page
from plantain.pages.thumbnails import data_uri, difference
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import (
    BUILD_DIRECTIONS,
    Direction,
    Finding,
    Observations,
    Outcome,
    SourceImage,
    derive_seed,
)
from plantain.rubrics import MED_BANANA, decide
from plantain.sources.samples import brain_average, sample_images

SIDE = 640


@dataclass(frozen=True)
class Row:
    finding: Finding
    direction: Direction
    image: SourceImage
    instruction: str
    before: np.ndarray | None
    after: np.ndarray | None
    mask: np.ndarray | None
    said: str
    passed: bool | None


def pictures(catalogue: Path | None) -> list[tuple[SourceImage, bytes]]:
    """Prepared images: those that arrive with the dependencies, and a catalogue's normal ones."""
    # Slices with a sella come last: only what no other slice can show is drawn on them.
    found = [sample.prepared() for sample in [*sample_images(), *brain_average(SELLA_CUTS["held-out"])]]
    if catalogue is not None:
        with Catalogue.open(catalogue) as opened:
            found += [(image, opened.read(image)) for image in opened.images()]
    return found


def rows(each: int, catalogue: Path | None, only: str | None) -> Iterator[Row]:
    by_modality = defaultdict(list)
    for image, data in pictures(catalogue):
        by_modality[image.modality].append((image, data))
    taxonomy = load_taxonomy()
    for modality, own in by_modality.items():
        for finding in taxonomy.of(modality):
            if finding.normal or (only and finding.name != only):
                continue
            shown = [(image, data) for image, data in own if not why_not_shown(finding, image)]
            for direction in BUILD_DIRECTIONS:
                turn = cycle(shown)
                for number in range(each if shown else 0):
                    for image, data in islice(turn, len(shown)):
                        made = row(finding, direction, image, decode(data), number)
                        if made.passed is not None:
                            break
                    yield made


def row(finding: Finding, direction: Direction, image: SourceImage, pixels: np.ndarray, number: int) -> Row:
    rng = np.random.default_rng(derive_seed(1, finding.name, number))
    sides, zones = sides_on(finding, image), zones_on(finding, image)
    place = (
        sides[int(rng.integers(len(sides)))] if sides else None,
        zones[int(rng.integers(len(zones)))] if zones else None,
    )
    look = ("moderate", "large")[number % 2], "marked"
    seed = derive_seed(2, finding.name, number)

    def words(way: Direction) -> str:
        return compose(Intent(finding.name, way, *place, *look), finding)

    try:
        if direction is Direction.REMOVE:
            pixels = render_instruction(pixels, words(Direction.ADD), image, seed).pixels
        edited = render_instruction(pixels, words(direction), image, seed + 1)
    except CannotShow as reason:
        return Row(finding, direction, image, words(direction), pixels, None, None, str(reason), None)
    seen = judge_encoded(
        encode_source(pixels),
        encode_jpeg(edited.pixels),
        words(direction),
        image,
        finding,
        direction,
        MED_BANANA,
    )
    if isinstance(seen, Outcome):
        return Row(
            finding,
            direction,
            image,
            words(direction),
            pixels,
            edited.pixels,
            edited.mask,
            seen.reason,
            False,
        )
    passed = decide(seen, MED_BANANA, judge="offline/instruments", policy="all-pass", threshold=0.7).qualified
    said = told(seen)
    return Row(finding, direction, image, words(direction), pixels, edited.pixels, edited.mask, said, passed)


def told(seen: Observations) -> str:
    failed = [
        f"{criterion}: {', '.join(result.codes) or 'failed'} ({result.evidence})"
        for criterion, result in seen.criteria.items()
        if not result.passed
    ]
    return "; ".join(failed) or "passes all four criteria"


def page(made: list[Row]) -> str:
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Contact sheet of the procedural editor</title><style>"
        "body{font:15px/1.45 system-ui,sans-serif;margin:1.5rem;background:#15171a;color:#e7e5e1}"
        "section{margin:2rem 0}article{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:.5rem}"
        "article p{grid-column:1/4;margin:0}img{width:100%;display:block}.no{color:#e5786a}.yes{color:#52b69a}</style>"
        "<h1>Contact sheet of the procedural editor</h1><p>Every picture right of another is synthetic. "
        "Research only, not for diagnosis. Left: before; middle: edited; right: what changed.</p>"
    ]
    for row in made:
        title = html.escape(f"{row.direction.value} {row.finding.name}, {row.image.id}")
        verdict = "" if row.passed is None else ("passed" if row.passed else "not passed")
        parts.append(
            f"<section><h2>{title}</h2><article><p>{html.escape(row.instruction)}</p>"
            f"<p class={'yes' if row.passed else 'no'}>{verdict} {html.escape(row.said)}</p>"
        )
        if row.before is not None and row.after is not None:
            changed = difference(row.before, row.after, SIDE, 90_000, row.mask)
            for source in (
                data_uri(row.before, SIDE, 120_000, synthetic=row.direction is Direction.REMOVE),
                data_uri(row.after, SIDE, 120_000, synthetic=True),
                changed,
            ):
                parts.append(f'<img src="{source}" alt="">')
        parts.append("</article></section>")
    return "".join(parts) + "</html>\n"


def sheets(made: list[Row], to: Path) -> None:
    """One PNG per modality and direction: before and after of each finding, side by side, named."""
    groups = defaultdict(list)
    for one in made:
        if one.after is not None and one.before is not None:
            groups[one.image.modality, one.direction.value].append(one)
    for (modality, direction), members in groups.items():
        tiles = [tile(one) for one in members]
        across = 3
        height, width = tiles[0].shape[:2]
        sheet = np.full((-(-len(tiles) // across) * height, across * width, 3), 20, np.uint8)
        for place, shown in enumerate(tiles):
            top, left = place // across * height, place % across * width
            sheet[top : top + height, left : left + width] = shown
        cv2.imwrite(str(to / f"{modality}-{direction}.png"), cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR))


def tile(one: Row) -> np.ndarray:
    size = 230
    assert one.before is not None
    assert one.after is not None
    both = [cv2.resize(part, (size, size), interpolation=cv2.INTER_AREA) for part in (one.before, one.after)]
    framed = np.full((size + 22, 2 * size + 4, 3), 20, np.uint8)
    framed[22:, :size], framed[22:, size + 2 : 2 * size + 2] = both
    colour = (120, 220, 150) if one.passed else (255, 140, 120)
    cv2.putText(framed, one.finding.name, (4, 16), cv2.FONT_HERSHEY_SIMPLEX, 0.5, colour, 1, cv2.LINE_AA)
    return framed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=Path("bench-out/contact-sheet"))
    parser.add_argument("--images", type=Path, help="a catalogue with more images")
    parser.add_argument("--each", type=int, default=2, help="images per finding and direction")
    parser.add_argument("--finding", help="only this one")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    made = list(rows(options.each, options.images, options.finding))
    write_page(options.to / "index.html", page(made))
    sheets(made, options.to)
    for one in made:
        verdict = {True: "passed", False: "NOT PASSED", None: "not shown"}[one.passed]
        print(
            f"{one.direction.value:<7} {one.finding.name:<28} {one.image.id:<24} {verdict:<11} {one.said[:90]}"
        )
    judged = [one for one in made if one.passed is not None]
    print(
        f"\n{len(made)} edits, {sum(one.passed is True for one in judged)} of {len(judged)} pass the offline judge"
    )
    print(f"contact sheet: {options.to / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
