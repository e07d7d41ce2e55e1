"""The judge's map of real films, held against what a person reads off them."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.chest_view import chest_view
from plantain.pixels.decode import decode

FILMS = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "nih-chest-xray" / "frontal"

# Outermost lung of the right and of the left, spine, apex and the lower dome, in pixels of 1024, read off by eye: films
# with black air beside the body, with soft exposure, and with raised arms.
BY_EYE = {
    "00001754_000": (235, 747, 495, 80, 590),
    "00003259_001": (233, 775, 510, 205, 605),
    "00010384_034": (238, 745, 485, 145, 700),
}


@pytest.mark.parametrize("name", BY_EYE)
@pytest.mark.skipif(not FILMS.exists(), reason="the shared films are not here")
def test_air_beside_the_body_is_no_lung(name: str) -> None:
    pixels = decode((FILMS / f"{name}.jpg").read_bytes())
    small = cv2.resize(pixels, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA)
    anatomy = chest_view(small.astype(np.float32).mean(axis=2))
    right, left, spine, apex, dome = BY_EYE[name]
    scale = MAP_SIDE / 1024
    lungs = anatomy.region("lungs")
    columns, rows = np.flatnonzero(lungs.any(axis=0)), np.flatnonzero(lungs.any(axis=1))
    # The region goes beyond what is seen by a margin, and down behind the diaphragm.
    assert abs(columns[0] - scale * right) < 60 * scale and abs(columns[-1] - scale * left) < 60 * scale
    assert abs(rows[0] - scale * apex) < 60 * scale and 0 < rows[-1] - scale * dome < 200 * scale
    assert anatomy.midline is not None and abs(anatomy.midline - scale * spine) < 30 * scale
