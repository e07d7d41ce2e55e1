"""The website examples of MedEBench, where a copy lies beside the repository: bounds and orders, never equality."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from plantain.metrics import cp_reference, ssim
from plantain.metrics.statistics.ranks import spearman

EXAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "medebench-examples"
pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="no copy of the website examples beside the repository"
)


def picture(name: str) -> np.ndarray:
    with Image.open(EXAMPLES / f"{name.replace(' ', '_')}.png") as opened:
        return np.asarray(opened.convert("RGB"))


def pairs() -> list[tuple[str, list[float], list[float]]]:
    """For each image the plain SSIM of every model's output, and the published masked SSIM."""
    published = json.loads((EXAMPLES / "published_scores.json").read_text())
    found = []
    for name, models in published.items():
        before = picture(f"{name}_Previous")
        plain = [ssim(before, picture(f"{name}_{model}")).value or 0.0 for model in models]
        found.append((name, plain, [scores["masked_ssim"] for scores in models.values()]))
    return found


def test_masking_can_only_add_to_plain_ssim_in_all_published_pairs():
    # Filling a region with zeros makes it agree: published >= plain, up to the rounding to one decimal.
    compared = [
        (plain, masked)
        for _, plains, published in pairs()
        for plain, masked in zip(plains, published, strict=True)
    ]
    assert len(compared) == 28
    assert all(plain <= masked + 0.05 for plain, masked in compared)


def test_models_keep_their_order_within_each_published_image():
    found = [spearman(plain, published).value for _, plain, published in pairs()]
    print("rank correlation within each image", [round(value, 2) for value in found])
    assert min(found) > 0.5
    assert np.mean(found) >= 0.8


def test_some_region_explains_each_published_score_of_an_image():
    # Growing a centred region moves the reference score from plain SSIM towards 1, never below plain by more
    # than what border windows cost.
    before, after = picture("64_Previous"), picture("64_ICEdit")
    height, width = before.shape[:2]
    scores = []
    for share in (0.0, 0.3, 0.6, 0.9):
        roi = np.zeros((height, width), bool)
        dy, dx = int(height * share / 2), int(width * share / 2)
        roi[height // 2 - dy : height // 2 + dy, width // 2 - dx : width // 2 + dx] = True
        scores.append(cp_reference(before, after, roi).value)
    # The notes give 0.79185 for scikit-image's defaults on this very pair.
    assert scores[0] == pytest.approx(0.79185, abs=1e-5)
    assert scores == sorted(scores)
