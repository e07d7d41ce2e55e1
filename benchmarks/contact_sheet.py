"""Every finding drawn on real images, before and after side by side, to be looked at.

Writes one PNG for each modality; a green name is an edit that the offline judge accepts, a red one that it rejects,
and a grey one that is undecided.

    python benchmarks/contact_sheet.py [--to FOLDER] [--each 3] [--finding NAME]
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import cv2
import numpy as np

from plantain.audit.clean import CleanEditRecipe, rendered_or_reason
from plantain.audit.images import AuditImage, package_images
from plantain.audit.planted_defects import CleanEdit
from plantain.findings import load_taxonomy
from plantain.offline.judge import measured
from plantain.pixels.arrays import Pixels
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Direction, Finding, Observations, derive_seed
from plantain.roles import EncodedImage, JudgeRequest
from plantain.rubrics import MED_BANANA

SIDE, ACROSS = 300, 3
COLOURS = {True: (120, 220, 150), False: (255, 140, 120), None: (190, 190, 190)}


def drawings(finding: Finding, images: list[AuditImage], each: int) -> Iterator[CleanEdit]:
    """Yield so many drawings of a finding, each on the next image on which it can be drawn."""
    own = [each for each in images if each.image.modality == finding.modality]
    made = 0
    for number, source in enumerate(islice(cycle(own), 4 * len(own))):
        recipe = CleanEditRecipe(source, finding, Direction.ADD, derive_seed(1, finding.name, number), "")
        edit = rendered_or_reason(recipe)
        if isinstance(edit, CleanEdit):
            yield edit
            made += 1
        if made == each:
            return
    print(f"{finding.name}: {made} of {each} drawn")


def accepted(edit: CleanEdit) -> bool | None:
    """Return the offline judge's verdict."""
    before = EncodedImage(encode_source(edit.original), "image/jpeg")
    after = EncodedImage(encode_jpeg(edit.edited), "image/jpeg")
    seen = measured(
        JudgeRequest(edit.image, before, after, edit.instruction, edit.finding, edit.direction, MED_BANANA, 0)
    )
    if not isinstance(seen, Observations):
        return None
    passed = [result.passed for result in seen.criteria.values()]
    return False if False in passed else (None if None in passed else True)


def pair(edit: CleanEdit) -> Pixels:
    """Return the surroundings of the change before and after, side by side."""
    ys, xs = np.nonzero(edit.mask)
    half = max(160, round(0.7 * max(np.ptp(ys), np.ptp(xs))))
    top, left = (
        int(np.clip(middle - half, 0, max(0, side - 2 * half)))
        for middle, side in zip((ys.mean(), xs.mean()), edit.mask.shape, strict=True)
    )
    box = (slice(top, top + 2 * half), slice(left, left + 2 * half))
    return np.hstack([cv2.resize(one[box], (SIDE, SIDE)) for one in (edit.original, edit.edited)])


def tile(edit: CleanEdit) -> Pixels:
    """Return `pair` with the finding's name."""
    name = f"{edit.finding.name}, {edit.image.id}"
    return np.asarray(
        cv2.putText(pair(edit), name, (6, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.5, COLOURS[accepted(edit)], 1),
        np.uint8,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=Path("bench-out/contact-sheet"))
    parser.add_argument("--each", type=int, default=3)
    parser.add_argument("--finding")
    options = parser.parse_args()
    images = package_images()
    sheets: dict[str, list[Pixels]] = defaultdict(list)
    taxonomy = load_taxonomy()
    for finding in taxonomy.findings:
        if finding.draw and options.finding in (None, finding.name):
            sheets[finding.modality] += [tile(edit) for edit in drawings(finding, images, options.each)]
    options.to.mkdir(parents=True, exist_ok=True)
    for modality, tiles in sheets.items():
        tiles += [np.zeros_like(tiles[0])] * (-len(tiles) % ACROSS) if tiles else []
        rows = [np.hstack(tiles[start : start + ACROSS]) for start in range(0, len(tiles), ACROSS)]
        if rows:
            path = options.to / f"{modality}.png"
            cv2.imwrite(str(path), cv2.cvtColor(np.vstack(rows), cv2.COLOR_RGB2BGR))
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
