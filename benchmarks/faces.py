"""How often the search for faces is right: crops of a portrait, and of real radiographs, slices and grey fundi.

Printed for two settings, by how many detections must agree: 4, as coloured scenes are searched, and 8, as grey
images and round fields on black are. Crops are of 70 to 100 % of a side (of coloured fundi 85 to 100 %, so that most
are still a round field on black, and only those that are), half of them mirrored, of images of
the dependencies.

Target: with the setting in use, no face in any medical image, and one in two thirds of the portraits.
Run: python benchmarks/faces.py [PORTRAITS]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np
import skimage.data

from plantain.pixels.arrays import Pixels
from plantain.privacy import faces
from plantain.sources.samples import sample_images

CROPS = {"chest_xray": 5, "fundus": 4, "brain_mri": 2}
PORTRAITS = int(sys.argv[1]) if len(sys.argv) > 1 else 30


def main() -> int:
    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    portrait = grey(skimage.data.astronaut()[:400, 64:464])
    sets = {"portrait": [crop(portrait, rng) for _ in range(PORTRAITS)]}
    for modality, times in CROPS.items():
        sets[modality] = [
            grey(crop(image, rng)) for image in images(modality) for _ in range(min(times, PORTRAITS))
        ]
    coloured = [
        crop(image, rng, 0.85) for image in images("fundus") for _ in range(min(CROPS["fundus"], PORTRAITS))
    ]
    sets["round field"] = [one for one in coloured if faces.round_field(one)]
    print(f"{'faces reported in crops of':<30}" + "".join(f"{name:>14}" for name in sets))
    in_use, found = faces.NEIGHBOURS_GREY, {}
    for agree in (faces.NEIGHBOURS, in_use):
        faces.NEIGHBOURS_GREY = agree
        found[agree] = {
            name: sum(bool(faces.photographed_faces(one)) for one in crops) for name, crops in sets.items()
        }
        counts = "".join(f"{f'{found[agree][name]} of {len(sets[name])}':>14}" for name in sets)
        print(f"{f'{agree} detections must agree':<30}{counts}", flush=True)
    medical = sum(found[in_use][name] for name in sets if name != "portrait")
    return 0 if medical == 0 and found[in_use]["portrait"] >= 2 * PORTRAITS / 3 else 1


def images(modality: str) -> Iterator[Pixels]:
    for sample in sample_images():
        if sample.image.modality == modality:
            yield sample.pixels


def crop(pixels: Pixels, rng: np.random.Generator, least: float = 0.7) -> Pixels:
    height, width = pixels.shape[:2]
    share = rng.uniform(least, 1.0)
    top, left = (int(rng.uniform(0, side * (1 - share))) for side in (height, width))
    part = pixels[top : top + int(height * share), left : left + int(width * share)]
    return part if rng.random() < 0.5 else part[:, ::-1]


def grey(pixels: Pixels) -> Pixels:
    return cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)


if __name__ == "__main__":
    sys.exit(main())
