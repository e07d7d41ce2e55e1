"""How far the Fréchet distance over radiomic features moves with known changes of an image set.

True set: axial slices of the MNI152 average brain, 1 mm apart. It is compared with itself after noise and blur, with
the offline editor's edits of it, and with crops of the fundus photograph and the chest radiograph of the package.
Targets: all are above the floor, distances grow with noise and blur, and another modality is farther than any edit.
Neighbouring slices are not independent patients, and an average brain has no grain: a real set is less sensitive.

Run: python benchmarks/sensitivity.py [--images 60] [--only TEXT]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise

import cv2
import numpy as np

from plantain.findings import load_taxonomy
from plantain.metrics.distributions import SetDistance, frechet_of_features
from plantain.metrics.radiomics import RadiomicsEncoder
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.editor import render_instruction
from plantain.offline.language import Intent, compose
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Direction, SourceImage
from plantain.sources.samples import brain_average, sample_images

SIDE, LOWEST_MM = 256, -10
Change = Callable[[int, Pixels, SourceImage], Pixels]


def noise(number: int, pixels: Pixels, deviation: float) -> Pixels:
    grain = np.random.default_rng(number).normal(0, deviation, (*pixels.shape[:2], 1))
    return np.clip(np.rint(pixels + grain), 0, 255).astype(np.uint8)


def edit(name: str, extent: str) -> Change:
    """Return the offline editor's rendering of a finding; the slice itself where it cannot be drawn."""
    finding = load_taxonomy().get("brain_mri", name)

    def edited(number: int, pixels: Pixels, image: SourceImage) -> Pixels:
        side = ("left", "right")[number % 2]
        intent = Intent(name, Direction.ADD, side=side, extent=extent, conspicuity="marked")
        try:
            return render_instruction(pixels, compose(intent, finding), image, number).pixels
        except CannotShow:
            return pixels

    return edited


def crops(modality: str) -> Change:
    """Return crops of half the side of the package's image of this modality."""
    whole = next(sample.pixels for sample in sample_images() if sample.image.modality == modality)
    length = min(whole.shape[:2]) // 2

    def crop(number: int, pixels: Pixels, image: SourceImage) -> Pixels:
        rng = np.random.default_rng(number)
        top, left = (int(rng.integers(0, side - length)) for side in whole.shape[:2])
        return np.ascontiguousarray(whole[top : top + length, left : left + length])

    return crop


SETS: dict[str, Change] = {
    **{f"noise, {sd} grey levels": lambda i, pixels, _, sd=sd: noise(i, pixels, sd) for sd in (1, 2, 4, 8)},
    **{
        f"blur, {px} px": lambda i, pixels, _, px=px: cv2.GaussianBlur(pixels, (0, 0), px)
        for px in (0.5, 1, 2)
    },
    "edits: glioma, moderate": edit("glioma", "moderate"),
    "edits: meningioma, large": edit("meningioma", "large"),
    "foreign modality: fundus": crops("fundus"),
    "foreign modality: chest radiograph": crops("chest_xray"),
}


def met(found: dict[str, SetDistance]) -> bool:
    """Return True if the distances that were measured meet the targets."""

    def values(family: str) -> list[float]:
        return [one.score.value or 0.0 for name, one in found.items() if name.startswith(family)]

    growing = all(a < b for family in ("noise", "blur") for a, b in pairwise(values(family)))
    farther = min(values("foreign"), default=np.inf) > max(values("edits"), default=0.0)
    return growing and farther and all(one.p is not None and one.p <= 0.05 for one in found.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    options = parser.parse_args()
    slices = brain_average([("axial", LOWEST_MM + i) for i in range(options.images)])
    true = [(decode(data), image) for image, data in (one.prepared(SIDE) for one in slices)]
    encoder = RadiomicsEncoder()
    reference = np.concatenate([encoder.images([pixels]) for pixels, _ in true])
    print(f"{encoder.name}; n = {len(true)}\n\n| set | distance | floor (5 %) | p |\n|---|---|---|---|")
    found: dict[str, SetDistance] = {}
    for name, change in SETS.items():
        if options.only in name:
            changed = np.concatenate([encoder.images([change(i, *one)]) for i, one in enumerate(true)])
            found[name] = one = frechet_of_features(
                reference, changed, pairs=range(len(true)), in_spreads=True
            )
            print(f"| {name} | {one.score.value:.3g} | {one.floor_high:.3g} | {one.p:.3f} |", flush=True)
    return 0 if met(found) else 1


if __name__ == "__main__":
    sys.exit(main())
