"""Heads drawn in code: a bright outline, soft tissue, and in some of them a ring, which is the finding."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from plantain.catalogue.store import Catalogue
from plantain.models.probe.frame import framed
from plantain.pixels.encode import encode_source
from plantain.records import Geometry, Licence, SourceImage
from plantain.train.probe.pictures import LabelledFrames


def head(seed: int, ring: bool, side: int = 160) -> np.ndarray:
    """uint8 (side, side, 3)."""
    rng = np.random.default_rng(seed)
    picture = np.zeros((side, side), np.float32)
    axes = (int(side * rng.uniform(0.32, 0.4)), int(side * rng.uniform(0.36, 0.44)))
    cv2.ellipse(picture, (side // 2, side // 2), axes, 0, 0, 360, 90, -1)
    cv2.ellipse(picture, (side // 2, side // 2), axes, 0, 0, 360, 200, 4)
    tissue = cv2.GaussianBlur(rng.normal(0, 60, picture.shape).astype(np.float32), (0, 0), 4)
    picture += np.where(picture > 0, tissue, 0)
    if ring:
        at = (side // 2 + int(rng.integers(-24, 25)), side // 2 + int(rng.integers(-24, 25)))
        cv2.circle(picture, at, 13, 30, -1)
        cv2.circle(picture, at, 13, 210, 4)
    return np.repeat(np.clip(picture, 0, 255).astype(np.uint8)[..., None], 3, axis=2)


def labelled(count: int, per_group: int = 1) -> LabelledFrames:
    """So many pictures, every other one with the ring."""
    rings = np.arange(count) % 2 == 1
    frames = np.stack([framed(head(seed, bool(ring))) for seed, ring in enumerate(rings)])
    groups = np.array([f"group {seed // (2 * per_group)} {seed % 2}" for seed in range(count)])
    return LabelledFrames(frames, rings[:, None], groups, ("ring",), "brain_mri", "digest", True)


def record(seed: int, ring: bool, **changes: object) -> SourceImage:
    """What a catalogue knows of a head."""
    told: dict[str, object] = {
        "id": f"head-{seed:04d}",
        "dataset": "drawn",
        "modality": "brain_mri",
        "labels": ("glioma" if ring else "notumor",),
        "licence": Licence.OPEN,
        "source_sha256": f"{seed:064x}",
        "prepared_sha256": "",
        "geometry": Geometry(160, 160, "pad", 0, 0, 160, 160),
        "group": f"patient {seed}",
    }
    return SourceImage(**(told | changes))  # type: ignore[arg-type]


def catalogue_of(folder: Path, count: int, **changes: object) -> Path:
    """A catalogue of so many heads, every other one labelled glioma."""
    with Catalogue.create(folder) as catalogue:
        for seed in range(count):
            ring = seed % 2 == 1
            catalogue.add(record(seed, ring, **changes), encode_source(head(seed, ring)))
    return folder
