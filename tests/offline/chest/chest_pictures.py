"""Frontal radiographs to draw on: the one that comes with a dependency, and shared ones where they are present."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np

from fakes.samples import prepared_of
from plantain.offline.rendering import Scene
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode
from plantain.pixels.prepare import prepare
from plantain.records import SourceImage

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"


class MakeScene(Protocol):
    """See the fixture `scene`."""

    def __call__(
        self,
        finding: str,
        direction: str = "add",
        *,
        seed: int = 1,
        pixels: Pixels | None = None,
        view: str | None = None,
        position: str | None = None,
        projection: str | None = None,
        **words: str | None,
    ) -> Scene: ...


@cache
def rg1() -> tuple[Pixels, SourceImage]:
    """The real radiograph of pydicom's data, prepared, and its record."""
    image, data = prepared_of("chest_xray")
    return decode(data), image


def shared_radiographs() -> list[Path]:
    """Further real radiographs, healthy-looking ones; empty where they are not here."""
    return sorted((SHARED / "med-banana-samples" / "Chest-XRay-remove" / "normal").glob("*.j*g"))


def shared_film(name: str) -> Path:
    """A film of the shared collection; it need not be here."""
    return SHARED / "nih-chest-xray" / "frontal" / f"{name}.jpg"


@cache
def shared_picture(path: Path) -> Pixels:
    gray = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    assert gray is not None
    pixels: Pixels = prepare(np.repeat(gray[..., None], 3, axis=2))[0]
    return pixels


def psnr_inside(one: Pixels, other: Pixels, where: Mask) -> float:
    """Peak signal-to-noise ratio in dB of the places inside a mask."""
    error = np.square(one.astype(float) - other)[where].mean()
    return float(10 * np.log10(255**2 / max(float(error), 1e-9)))
