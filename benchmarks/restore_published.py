"""Published edits of MedEBench before and after `[loop] restore = "outside"`, as pictures to be looked at.

Each row: the picture that was to be edited, the benchmark's own answer, a model's output, what is left of it when all
else is put back, and the mask of what may differ. The region is where the benchmark's own answer differs from the
picture, so it knows what a build does not.

Run: python benchmarks/restore_published.py [--shared FOLDER] [--to bench-out/restored-published]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from plantain.offline.outside import put_back
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode_untrusted
from plantain.records import Licence, SourceImage
from plantain.sources.entries import UNPREPARED

SIDE = 256
DIFFERS, REACH = 24, 0.03
"""Grey levels by which the benchmark's own answer differs where the change belongs, and how far around it in parts of
the longer side."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument("--shared", type=Path, default=shared)
    parser.add_argument("--to", type=Path, default=Path("bench-out/restored-published"))
    arguments = parser.parse_args()
    folder = arguments.shared / "medebench-examples"
    if not folder.is_dir():
        print(f"{folder}: is not there")
        return 0
    arguments.to.mkdir(parents=True, exist_ok=True)
    reasons: Counter[str] = Counter()
    for before in sorted(folder.glob("*_Previous.png")):
        case = before.name.partition("_")[0]
        original = read(before)
        truth = read(folder / f"{case}_Ground_Truth.png", original)
        rows = []
        for path in sorted(folder.glob(f"{case}_*.png")):
            model = path.stem.partition("_")[2]
            if model in ("Previous", "Ground_Truth"):
                continue
            output = read(path, original)
            done = put_back(original, output, "", image_of(case), None, None, region_of(original, truth))
            print(
                f"{case} {model}: {done.why_not or f'{done.share:.0%} put back, {done.residual:.2f} pixels left'}"
            )
            reasons["restored" if not done.why_not else done.why_not.partition(":")[0]] += 1
            mask = np.repeat(255 * done.mask[..., None].astype(np.uint8), 3, axis=2)
            rows.append(np.hstack([small(one) for one in (original, truth, output, done.pixels, mask)]))
        cv2.imwrite(str(arguments.to / f"{case}.png"), np.vstack(rows)[..., ::-1])
    print(", ".join(f"{number} {reason}" for reason, number in reasons.most_common()))
    return 0


def read(path: Path, like: Pixels | None = None) -> Pixels:
    """A picture, uint8 (H, W, 3); of another's size where one is given, as a benchmark compares them."""
    pixels = decode_untrusted(path.read_bytes(), path.name)
    if like is not None and pixels.shape != like.shape:
        pixels = cv2.resize(pixels, like.shape[1::-1], interpolation=cv2.INTER_AREA)
    return pixels


def region_of(original: Pixels, truth: Pixels) -> Mask:
    """Where the benchmark's own answer differs, with a little around it."""
    apart = cv2.GaussianBlur(cv2.absdiff(original, truth).max(axis=2), (0, 0), 2.0) > DIFFERS
    side = 2 * round(REACH * max(original.shape[:2])) + 1
    return cv2.dilate(apart.astype(np.uint8), np.ones((side, side), np.uint8)) > 0


def image_of(case: str) -> SourceImage:
    return SourceImage(case, "medebench", "unknown", (), Licence.UNKNOWN, "0" * 64, "", UNPREPARED)


def small(pixels: Pixels) -> Pixels:
    return cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_AREA)


if __name__ == "__main__":
    sys.exit(main())
