"""The scene that every chest test starts from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chest_pictures import MakeScene, rg1

from plantain.findings import load_taxonomy
from plantain.offline.language import Intent
from plantain.offline.rendering import Scene
from plantain.pixels.arrays import Pixels
from plantain.records import Direction


@pytest.fixture
def scene() -> MakeScene:
    """Builds a scene: `scene(finding, direction, seed=..., pixels=..., view=..., position=..., **intent)`."""

    def build(
        finding: str,
        direction: str = "add",
        *,
        seed: int = 1,
        pixels: Pixels | None = None,
        view: str | None = None,
        position: str | None = None,
        projection: str | None = None,
        **words: str | None,
    ) -> Scene:
        original, image = rg1()
        said = {"view": view, "position": position, "projection": projection}
        image = replace(image, **{name: value for name, value in said.items() if value is not None})  # type: ignore[arg-type]
        kind = load_taxonomy().get("chest_xray", finding)
        intent = Intent(finding, Direction(direction), **words)  # type: ignore[arg-type]
        return Scene(original if pixels is None else pixels, image, kind, intent, np.random.default_rng(seed))

    return build
