"""A verdict comes from the two images, never from what memory held before."""

from __future__ import annotations

import numpy as np
import pytest

from fakes.samples import prepared_of
from plantain.findings import load_taxonomy
from plantain.offline.judge import judge_encoded
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Direction
from plantain.rubrics import MED_BANANA

FINDINGS = {"brain_mri": "glioma", "chest_xray": "Lung Lesion", "fundus": "AMD"}


def soil(value: float) -> None:
    """Leave freed memory of many sizes behind that holds a value."""
    for side in (60, 100, 180, 256, 360, 512, 1024):
        held = [np.full((side, side + 9 * step), value, np.float32) for step in range(20)]
        del held


@pytest.mark.parametrize("modality", FINDINGS)
def test_a_verdict_does_not_depend_on_freed_memory(modality: str) -> None:
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
