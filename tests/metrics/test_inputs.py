"""Every metric stays in its range, reads all forms of a mask alike, and refuses data other than images."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from plantain.metrics import cp_reference, masked_ssim, psnr, ssim
from plantain.metrics.learned import LPIPS, Reward
from plantain.metrics.similarity import ISim
from plantain.pixels.arrays import Image, Mask
from plantain.records import Score

SHAPES = st.tuples(st.integers(1, 20), st.integers(1, 20)) | st.tuples(
    st.integers(1, 20), st.integers(1, 20), st.integers(1, 4)
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Image, Image, Mask]:
    """Draw two images of one shape and a region; often flat, equal or opposite, where sums cancel."""
    shape = draw(SHAPES)
    before = draw(arrays.arrays(np.uint8, shape))
    after = (
        draw(st.sampled_from([before, 255 - before]))
        if draw(st.booleans())
        else draw(arrays.arrays(np.uint8, shape))
    )
    return before, after, draw(arrays.arrays(np.bool_, shape[:2]))


PAIRS: dict[str, tuple[Callable[[Image, Image], Score], float, float]] = {
    "psnr": (psnr, 0.0, np.inf),
    "ssim": (ssim, -1.0, 1.0),
}
REGIONS: dict[str, Callable[[Image, Image, Mask], Score]] = {
    "masked_ssim": masked_ssim,
    "cp_reference": cp_reference,
}


@given(cases())
@settings(max_examples=150)
def test_no_value_leaves_its_range_and_masks_are_read_alike(case: tuple[Image, Image, Mask]) -> None:
    before, after, roi = case
    for name, (pair, low, high) in PAIRS.items():
        value = pair(before, after).value
        assert value is None or low <= value <= high, name
    for name, region in REGIONS.items():
        score = region(before, after, roi)
        assert score.value is None or -1.0 <= score.value <= 1.0, name
        assert region(before, after, roi.astype(np.uint8) * 255) == score, name
        if name != "cp_reference":  # as published, a mask file of 0 and 1 hides next to nothing
            assert region(before, after, roi.astype(np.uint8)) == score, name


GOOD = np.full((16, 16), 90, np.uint8)
ROI = np.zeros((16, 16), bool)
NOT_IMAGES = [
    (GOOD / 255.0, r"uint8 arrays of grey levels 0 to 255, not float64; of values in \[0, 1\]"),
    (GOOD[0], r"of shape \(H, W\) or \(H, W, C\), not \(16,\)"),
]


class Never:
    """A network that must not be called."""

    name = "never"

    def __getattr__(self, name: str) -> Callable[..., object]:
        def asked(*arguments: object) -> object:
            raise AssertionError(f"{name} was asked")

        return asked


MEASURES: list[Callable[[object], object]] = [
    lambda image: psnr(image, image),  # type: ignore[arg-type]
    lambda image: ssim(image, image),  # type: ignore[arg-type]
    lambda image: masked_ssim(image, image, ROI),  # type: ignore[arg-type]
    lambda image: cp_reference(image, image, ROI),  # type: ignore[arg-type]
    lambda image: LPIPS(Never()).measure(SimpleNamespace(truth=image), image),  # type: ignore[arg-type]
    lambda image: Reward(Never()).measure(SimpleNamespace(prompt=""), image),  # type: ignore[arg-type]
    lambda image: ISim(Never()).measure(SimpleNamespace(truth=image), image),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("image", "complaint"), NOT_IMAGES)
@pytest.mark.parametrize("measure", MEASURES)
def test_every_metric_refuses_data_that_is_not_an_image(
    measure: Callable[[object], object], image: object, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        measure(image)


@pytest.mark.parametrize(
    ("mask", "complaint"),
    [
        (ROI.astype(np.float32), "a mask is bool, or uint8 of 0 and 255, not float32"),
        (ROI[:, :8], r"a mask of shape \(16, 8\) for images of \(16, 16\)"),
        (np.arange(256, dtype=np.uint8).reshape(16, 16), "grey levels 0 to 255; .* threshold it first"),
    ],
)
def test_data_that_is_not_a_mask_is_refused(mask: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"roi: {complaint}"):
        masked_ssim(GOOD, GOOD, mask)  # type: ignore[arg-type]
