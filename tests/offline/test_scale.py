"""The instrument judge on MedEBench's scales: real images, known changes, and its unscored cases."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import skimage.data

from fakes.requests import source_image
from plantain.bench.benchmark.native_format import encode_png
from plantain.offline.scale import scaled
from plantain.pixels.arrays import Pixels
from plantain.records import Direction, Finding, Observations
from plantain.roles import EncodedImage, JudgeRequest
from plantain.rubrics import MEDEBENCH

IMAGE = source_image(modality="photo")


@pytest.fixture(scope="module")
def before() -> Pixels:
    retina = skimage.data.retina()
    small = cv2.resize(retina, (320, 320), interpolation=cv2.INTER_AREA)
    return np.asarray(small * np.float32(0.7), np.uint8)  # nothing that is made brighter runs into white


def with_disc(pixels: Pixels, by: float, x: int = 120, y: int = 170) -> Pixels:
    rows, columns = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    soft = np.clip((30 - np.hypot(rows - y, columns - x)) / 10, 0, 1)
    return np.clip(pixels + (by * soft)[..., None], 0, 255).astype(np.uint8)


def scored(
    before: Pixels, after: Pixels, truth: Pixels | None, finding: Finding | None = None
) -> Observations:
    first, second, real = (
        None if one is None else EncodedImage(encode_png(one), "image/png") for one in (before, after, truth)
    )
    assert first is not None and second is not None
    words, way = "Make the spot brighter.", Direction.CHANGE
    report = scaled(JudgeRequest(IMAGE, first, second, words, finding, way, MEDEBENCH, 0, real))
    assert isinstance(report, Observations)
    return report


def numbers(report: Observations) -> tuple[float | None, float | None, float | None]:
    return (
        report.criteria["editing_accuracy"].value,
        report.criteria["context_preservation"].value,
        report.criteria["visual_quality"].value,
    )


def test_the_unchanged_image_achieves_nothing_and_the_real_result_has_full_scores(before: Pixels) -> None:
    truth = with_disc(before, 60)
    assert numbers(scored(before, before, truth)) == (0.0, 10.0, 10.0)
    assert numbers(scored(before, truth, truth)) == (10.0, 10.0, 10.0)


def test_half_of_the_change_is_half_of_the_accuracy(before: Pixels) -> None:
    ea, cp, _ = numbers(scored(before, with_disc(before, 30), with_disc(before, 60)))
    assert ea == pytest.approx(5.0, abs=0.5)
    assert cp is not None
    assert cp > 9.9


def test_a_full_repaint_loses_on_preservation_and_quality(before: Pixels) -> None:
    truth = with_disc(before, 60)
    _, cp, vq = numbers(scored(before, cv2.GaussianBlur(truth, (0, 0), 4), truth))
    assert cp is not None
    assert vq is not None
    assert cp < 9.7
    assert vq < 1.0


def test_accuracy_is_unscored_without_an_aligned_truth_or_a_finding(before: Pixels) -> None:
    turned = np.ascontiguousarray(np.rot90(with_disc(before, 60)))
    for truth, reason in ((None, "no real result and no finding"), (turned, "is not aligned")):
        report = scored(before, with_disc(before, 60), truth)
        assert report.criteria["editing_accuracy"].passed is None
        assert reason in report.criteria["editing_accuracy"].evidence
        assert truth is not None or report.criteria["context_preservation"].value == 10.0
