"""The scene that every brain test starts from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from brain_slices import MakeScene, picture

from plantain.findings import load_taxonomy
from plantain.offline.language import Intent
from plantain.offline.rendering import Scene
from plantain.pixels.arrays import Pixels
from plantain.records import Direction


@pytest.fixture
def scene() -> MakeScene:
    """Builds a scene: `scene(name, finding, direction, seed=..., pixels=..., sequence=..., **intent)`."""

    def build(
        name: str,
        finding: str,
        direction: str = "add",
        *,
        seed: int = 1,
        pixels: Pixels | None = None,
        sequence: str | None = None,
        plane: str | None = None,
        **words: str | None,
    ) -> Scene:
        original, image = picture(name)
        if sequence is not None:
            image = replace(image, sequence=sequence)
        if plane is not None:
            image = replace(image, plane=plane)
        kind = load_taxonomy().get("brain_mri", finding)
        intent = Intent(finding, Direction(direction), **words)  # type: ignore[arg-type]
        return Scene(original if pixels is None else pixels, image, kind, intent, np.random.default_rng(seed))

    return build
