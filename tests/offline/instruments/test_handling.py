"""What happened to the whole picture is taken out: whole pixels back, so that nothing measured hangs on them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.samples import prepared_of
from plantain.findings import load_taxonomy
from plantain.offline.instruments.handling import handled
from plantain.offline.judge import judge_encoded
from plantain.offline.language import Intent, compose
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Direction, Observations
from plantain.rubrics import MED_BANANA


def moved(pixels: Pixels, dx: float, dy: float) -> Pixels:
    """To the right and down, borders repeated."""
    matrix = np.array([[1, 0, dx], [0, 1, dy]], np.float32)
    flags = cv2.INTER_NEAREST if (dx, dy) == (round(dx), round(dy)) else cv2.INTER_CUBIC
    size = pixels.shape[1::-1]
    back = cv2.warpAffine(pixels, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(back, np.uint8)


def with_lesion(pixels: Pixels) -> Pixels:
    ys, xs = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    hill = 30 * np.clip((60 - np.hypot(xs - 700, ys - 330)) / 12, 0, 1)[..., None]
    return np.asarray(np.clip(np.rint(pixels + hill), 0, 255), np.uint8)


@pytest.mark.parametrize(("dx", "dy"), [(1, -1), (0.8, 0.0)])
def test_both_pictures_lie_where_the_original_lay(dx: float, dy: float) -> None:
    original = decode(prepared_of("chest_xray")[1])
    edited = with_lesion(original)
    before, after, told = handled(original, moved(edited, dx, dy), whole_field=False)
    assert told.moved == pytest.approx((dx, dy), abs=0.1)
    inner = (slice(2, -2), slice(2, -2))
    if (dx, dy) == (round(dx), round(dy)):
        assert np.array_equal(before[inner], original[inner])
        assert np.array_equal(after[inner], edited[inner])
    rest = np.abs(after[inner].astype(int) - moved(edited, dx - round(dx), dy - round(dy))[inner])
    assert np.percentile(rest, 99) <= 1


def test_measurements_are_the_same_after_one_pixel() -> None:
    image, data = prepared_of("chest_xray")
    finding = load_taxonomy().get("chest_xray", "Lung Lesion")
    original = decode(data)
    edited = with_lesion(original)
    words = compose(Intent(finding.name, Direction.ADD, side="left"), finding)

    def told(pixels: Pixels) -> list[str]:
        lossless = cv2.imencode(".png", pixels[..., ::-1])[1].tobytes()
        seen = judge_encoded(data, lossless, words, image, finding, Direction.ADD, MED_BANANA)
        assert isinstance(seen, Observations)
        texts = (text for one in seen.criteria.values() for text in one.evidence.split("; "))
        return [text for text in texts if not text.startswith(("came back", "SSIM"))]

    assert told(moved(edited, 1, 0)) == told(edited)
