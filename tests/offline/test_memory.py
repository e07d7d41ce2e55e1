"""What a judge measures comes from its two pictures, never from what memory held before."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.samples import prepared_of
from plantain.findings import load_taxonomy
from plantain.offline.instruments.brain_view import brain_view
from plantain.offline.judge import judge_encoded
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Direction
from plantain.rubrics import MED_BANANA

FINDINGS = {"brain_mri": "glioma", "chest_xray": "Lung Lesion", "fundus": "AMD"}


def soil(value: float) -> None:
    """Leaves freed memory of many sizes behind that holds a value."""
    for side in (60, 100, 180, 256, 360, 512, 1024):
        held = [np.full((side, side + 9 * step), value, np.float32) for step in range(20)]
        del held


@pytest.mark.parametrize("modality", FINDINGS)
def test_a_verdict_does_not_hang_on_what_memory_held(modality: str) -> None:
    image, data = prepared_of(modality)
    pixels = decode(data).astype(np.float32)
    ys, xs = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    lesion = 30 * np.exp(-((xs - 600) ** 2 + (ys - 420) ** 2) / 2500)
    edited = encode_jpeg(np.clip(pixels + lesion[..., None], 0, 255).astype(np.uint8))
    finding = load_taxonomy().get(modality, FINDINGS[modality])
    seen = []
    for value in (0.0, 3e4, 1.0):
        soil(value)
        words = f"Add a small {finding.name} on the patient's left."
        seen.append(judge_encoded(data, edited, words, image, finding, Direction.ADD, MED_BANANA))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("value", [255.0, 3e4])
def test_a_ray_that_leaves_the_picture_holds_nothing_of_what_memory_held(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCV leaves what lies beyond the picture as it finds it, unless it is told to fill it."""
    real = cv2.warpPolar

    def on_used_memory(src, size, centre, reach, flags):
        return real(src, size, centre, reach, flags, dst=np.full(size[::-1], value, src.dtype))

    ys, xs = np.mgrid[:256, :200].astype(np.float32)
    far = np.hypot((xs - 92) / 95, (ys - 130) / 122)
    level = np.where(far < 1, 200, 5).astype(np.float32)
    level[(far > 0.82) & (far < 0.93)] = 40  # bone
    level[far < 0.82] = 110
    inside = brain_view(level, "axial").regions["brain"]
    assert 0.6 < inside.sum() / (far < 1).sum() < 0.9
    monkeypatch.setattr(cv2, "warpPolar", on_used_memory)
    assert (brain_view(level, "axial").regions["brain"] == inside).all()
