"""What the check of removals takes for the lesion, against tumours that were outlined by eye.

`outlines_by_eye.csv` holds polygons around tumours of the shared slices (x,y as shares of the frame), drawn on enlarged
pictures by one non-clinician who had not seen what the check finds: the mass with its necrosis and cysts, without the
swelling around it. Slices are the first of `removals_by_eye.csv` with halves that the check compares, but those on
which no border could be made out; the border is "soft" where it had to be guessed in places.

Beside the overlap it is shown what the rule "less than 80 % of the lesion's extent changed" decides: where the whole
outline is filled in from around it, where only half of it is, and on the offline editor's own removals, by the share of
the outline that the editor changed.

    python benchmarks/lesion_extents.py --shared ../shared
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.pair import grow
from plantain.offline.removals import HALF_LEFT, broken
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import SourceImage
from removals_by_eye import measured, rate, removed, slice_of

TABLE = Path(__file__).with_name("outlines_by_eye.csv")
BESIDE = 3.0
"""Pixels of the small frame beyond the outline that are filled in with it: a drawn outline is not exact."""
ELSEWHERE = 0.1


@dataclass(slots=True)
class Found:
    """What came out for the slices of one half: overlaps, and per kind of removal whether it was called broken."""

    overlap: list[float] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)
    beyond: list[float] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    failed: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))


def outline_on(image: SourceImage, points: str) -> Mask:
    """A polygon of the table on the small frame of the prepared slice."""
    shares = np.array([[float(value) for value in pair.split(",")] for pair in points.split()])
    there = image.geometry
    places = shares * (there.inner_width, there.inner_height) + (there.left, there.top)
    side = max(there.left * 2 + there.inner_width, there.top * 2 + there.inner_height)
    inside = np.zeros((MAP_SIDE, MAP_SIDE), np.uint8)
    cv2.fillPoly(inside, [np.round(places * MAP_SIDE / side).astype(np.int32)], 1)
    return inside.astype(bool)


def filled_in(before: Pixels, where: Mask) -> Pixels:
    """The slice with a place of the small frame filled in from around it."""
    small = cv2.resize(before, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA)
    change = cv2.inpaint(small, where.astype(np.uint8), 5, cv2.INPAINT_TELEA).astype(np.float32) - small
    size = (before.shape[1], before.shape[0])
    return np.clip(np.rint(before + cv2.resize(change, size)), 0, 255).astype(np.uint8)


def hold(row: dict[str, str], folder: Path, found: Found) -> None:
    """Measures one slice of the table."""
    image, before = slice_of(folder, row["label"], row["file"])
    outline = outline_on(image, row["outline"])
    rows, columns = np.mgrid[:MAP_SIDE, :MAP_SIDE]
    ys, xs = np.nonzero(outline)
    near = grow(outline, BESIDE)
    for name, where in (
        ("whole", near),
        ("half, by columns", near & (columns <= np.median(xs))),
        ("half, by rows", near & (rows <= np.median(ys))),
    ):
        removal = measured(image, before, filled_in(before, where))
        found.failed[name].append(removal is not None and bool(broken(removal)))
        if name == "whole" and removal is not None:
            both = int((removal.lesion & outline).sum())
            found.overlap.append(both / int((removal.lesion | outline).sum()))
            found.covered.append(both / int(outline.sum()))
            found.beyond.append(1 - both / int(removal.lesion.sum()))
            if found.overlap[-1] < ELSEWHERE:
                found.elsewhere.append(row["file"])
    editor = removed(folder, row["label"], row["file"])
    if not isinstance(editor, str):
        changed = (
            cv2.resize(editor.mask.astype(np.uint8), (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_NEAREST)
            > 0
        )
        most = (changed & outline).sum() >= HALF_LEFT * outline.sum()
        removal = measured(image, before, editor.after)
        name = f"editor, {'' if most else 'less than '}{HALF_LEFT:.0%} of the outline"
        found.failed[name].append(removal is not None and bool(broken(removal)))


def tell(name: str, found: Found) -> None:
    print(
        f"{name}: the check names a lesion on {len(found.overlap)} of {len(found.failed['whole'])} outlined slices"
    )
    for what, values in (
        ("intersection over union", found.overlap),
        ("share of the outline covered", found.covered),
        ("share of the lesion beyond the outline", found.beyond),
    ):
        low, middle, high = np.percentile(values, (25, 50, 75))
        print(f"  {what:<40}median {middle:.2f}, middle half {low:.2f} to {high:.2f}")
    half = sum(value >= 0.5 for value in found.overlap)
    print(f"  intersection over union of 0.5 and more: {rate(half, len(found.overlap))}")
    print(f"  elsewhere (below {ELSEWHERE}): {len(found.elsewhere)} {' '.join(found.elsewhere)}")
    for kind, failed in sorted(found.failed.items()):
        print(f"  {kind:<40}failed {rate(sum(failed), len(failed))}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    options = parser.parse_args()
    folder = options.shared / "data/brain-tumor-mri/Training"
    everything: dict[str, Found] = defaultdict(Found)
    with TABLE.open() as table:
        for row in csv.DictReader(table):
            hold(row, folder, everything[row["half"]])
    for name, found in sorted(everything.items()):
        tell(name, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
