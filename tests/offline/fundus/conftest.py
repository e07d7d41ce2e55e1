"""Real fundus photographs and scenes on them."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import skimage.data

from fakes.scenes import SceneMaker
from plantain.findings import load_taxonomy
from plantain.offline.language import Intent
from plantain.offline.rendering import Scene
from plantain.pixels.arrays import Pixels
from plantain.pixels.prepare import prepare
from plantain.records import Direction, Geometry, Licence, SourceImage

SAMPLES = Path(__file__).parents[4] / "shared/data/med-banana-samples/Fundus-remove/normal"


@pytest.fixture(scope="session")
def retina() -> Pixels:
    """The normal left eye that comes with scikit-image, prepared."""
    pixels, _ = prepare(skimage.data.retina())
    return pixels


@pytest.fixture(scope="session")
def published() -> dict[str, Pixels]:
    """Prepared photographs of a published sample, where it lies beside the project."""
    found = {path.stem: cv2.imread(str(path))[..., ::-1].copy() for path in sorted(SAMPLES.glob("101*.jpeg"))}
    if not found:
        pytest.skip("the published sample is not beside the project")
    return found


@pytest.fixture(scope="session")
def make_scene() -> SceneMaker:
    """Makes a scene from pixels, the finding's name, a seed, and what the instruction says."""
    taxonomy = load_taxonomy()

    def make(pixels: Pixels, name: str, *, seed: int = 1, direction: str = "add", **said: object) -> Scene:
        image = SourceImage(
            "x",
            "test",
            "fundus",
            ("normal",),
            Licence.OPEN,
            "0",
            "0",
            Geometry(1024, 1024, "pad", 0, 0, 1024, 1024),
        )
        finding = taxonomy.get("fundus", name)
        intent = Intent(name, Direction(direction), **said)  # type: ignore[arg-type]
        return Scene(pixels, image, finding, intent, np.random.default_rng(seed))

    return make
