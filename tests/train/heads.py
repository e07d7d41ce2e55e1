"""Synthetic heads: a bright outline with soft tissue, and in some of them a ring, the finding."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from fakes.requests import source_image
from plantain.catalogue.store import Catalogue
from plantain.pixels.encode import encode_source
from plantain.records import Geometry, SourceImage


def head(seed: int, ring: bool, side: int = 160) -> np.ndarray:
    """uint8 (side, side, 3)."""
    rng = np.random.default_rng(seed)
    image = np.zeros((side, side), np.float32)
    axes = (int(side * rng.uniform(0.32, 0.4)), int(side * rng.uniform(0.36, 0.44)))
    cv2.ellipse(image, (side // 2, side // 2), axes, 0, 0, 360, 90, -1)
    cv2.ellipse(image, (side // 2, side // 2), axes, 0, 0, 360, 200, 4)
    tissue = cv2.GaussianBlur(rng.normal(0, 60, image.shape).astype(np.float32), (0, 0), 4)
    image += np.where(image > 0, tissue, 0)
    if ring:
        at = (side // 2 + int(rng.integers(-24, 25)), side // 2 + int(rng.integers(-24, 25)))
        cv2.circle(image, at, 13, 30, -1)
        cv2.circle(image, at, 13, 210, 4)
    return np.repeat(np.clip(image, 0, 255).astype(np.uint8)[..., None], 3, axis=2)


def record(seed: int, **changes: object) -> SourceImage:
    """The catalogue record of a head; every other one is labelled glioma."""
    own: dict[str, object] = {"id": f"head-{seed:04d}", "dataset": "drawn", "modality": "brain_mri"}
    own |= {"labels": ("glioma" if seed % 2 else "notumor",), "group": f"patient {seed}"}
    own |= {
        "source_sha256": f"{seed:064x}",
        "prepared_sha256": "",
        "view": "unknown",
        "projection": "unknown",
    }
    return source_image(**(own | changes))


def catalogue_of(folder: Path, count: int, side: int = 160, **changes: object) -> Path:
    """A catalogue of `count` heads; those labelled glioma have the ring."""
    changes["geometry"] = Geometry(side, side, "pad", 0, 0, side, side)
    with Catalogue.create(folder) as catalogue:
        for seed in range(count):
            pixels = cv2.resize(head(seed, seed % 2 == 1), (side, side))
            catalogue.add(record(seed, **changes), encode_source(pixels))
    return folder
