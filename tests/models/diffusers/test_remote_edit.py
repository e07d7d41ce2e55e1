"""Open weights on an engine's worker: the same bytes as on a device of this machine, from another process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from fakes.elsewhere import Elsewhere
from plantain.engines.contract import engine_in_place
from plantain.models.diffusers.settings import Settings
from plantain.models.resolver import resolve_editor
from plantain.pixels.encode import normalise
from plantain.pixels.fingerprint import pixel_sha256
from plantain.records import Direction, Geometry, Licence, SourceImage
from plantain.roles import EditedImage, EditRequest, EncodedImage, NormalForm, Reply

pytestmark = pytest.mark.slow
IMAGE = SourceImage("x", "d", "fundus", (), Licence.OPEN, "a", "b", Geometry(64, 64, "pad", 0, 0, 64, 64))


@pytest.mark.usefixtures("devices_here")
def test_a_worker_makes_the_same_bytes(tiny_folder: Callable[[str], Path]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    original = EncodedImage(cv2.imencode(".png", pixels)[1].tobytes(), "image/png")
    asked = EditRequest(IMAGE, original, "add a mass", 7, direction=Direction.ADD)
    options = Settings(device="cpu", side=64)

    async def edited(engine: Elsewhere | None) -> Reply[EditedImage]:
        editor = resolve_editor(f"diffusers/{tiny_folder('instruct-pix2pix')}", options)
        engine_in_place.set(engine)
        try:
            return await editor.edit(asked)
        finally:
            await editor.aclose()  # type: ignore[attr-defined]
            if engine is not None:
                engine.close()

    here, there = asyncio.run(edited(None)), asyncio.run(edited(Elsewhere()))
    assert here.value is not None and there.value is not None, (here.outcome, there.outcome)
    assert (there.value.image, there.raw, there.usage) == (here.value.image, here.raw, here.usage)
    normal = normalise(here.value.image.data)
    assert there.value.normal == NormalForm(normal, pixel_sha256(normal))
