"""Outputs as they are kept, and the baselines."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
import skimage.data
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.generate.editors import BASELINES, TRICKS
from plantain.bench.generate.generate import at_own_size
from plantain.metrics import psnr, ssim
from plantain.pixels.decode import BadImage, decode


def picture(width: int, height: int) -> np.ndarray:
    return cv2.resize(skimage.data.retina(), (width, height), interpolation=cv2.INTER_AREA)


def test_a_png_of_pixels_alone_is_kept_as_it_came() -> None:
    """Pillow's file, not ours; one with words, or bytes behind its end is written anew."""
    pixels, plain = picture(65, 101), io.BytesIO()
    Image.fromarray(pixels).save(plain, "PNG", compress_level=9)
    png, decoded, note = at_own_size(plain.getvalue(), (65, 101))
    assert (png, note) == (plain.getvalue(), "")
    assert np.array_equal(decoded, pixels)
    words, said = PngInfo(), io.BytesIO()
    words.add_text("patient", "somebody")
    Image.fromarray(pixels).save(said, "PNG", pnginfo=words)
    for data in (said.getvalue(), plain.getvalue() + b"behind"):
        png, _, _ = at_own_size(data, (65, 101))
        assert png != data and b"somebody" not in png and b"behind" not in png
        assert np.array_equal(decode(png), pixels)


def test_other_size_is_resized_as_pillow_does_and_said() -> None:
    pixels = picture(130, 202)
    png, _, note = at_own_size(encode_png(pixels), (65, 101))
    expected = np.asarray(Image.fromarray(pixels).resize((65, 101), Image.Resampling.BICUBIC))
    assert np.array_equal(decode(png), expected)
    assert note.startswith("resized from 130x202: bicubic to the size of the previous image")


@settings(max_examples=40, deadline=None)
@given(st.integers(64, 300), st.integers(64, 300), st.integers(64, 300), st.integers(64, 300))
def test_another_ratio_of_sides_is_malformed_from_one_percent_on(w: int, h: int, ow: int, oh: int) -> None:
    data = encode_png(np.zeros((oh, ow, 3), np.uint8))
    if abs((ow / oh) / (w / h) - 1) > 0.01:
        with pytest.raises(BadImage, match="another ratio of sides"):
            at_own_size(data, (w, h))
    else:
        assert decode(at_own_size(data, (w, h))[0]).shape == (h, w, 3)


@pytest.mark.parametrize(
    ("size", "through"),
    # 700 * 512 / 900 = 398.2, floored to 392; pictures that are no larger than 512 go through half of it
    [((512, 512), "256x256"), ((336, 512), "168x256"), ((700, 900), "392x512")],
)
def test_baselines_cost_what_their_names_say(size: tuple[int, int], through: str) -> None:
    pixels = picture(*size)
    (copied, _), (resized, note), (compressed, _) = (TRICKS[name](pixels) for name in BASELINES[:3])
    assert np.array_equal(copied, pixels)
    for worse in (resized, compressed):
        assert worse.shape == pixels.shape
        assert (ssim(pixels, worse).value or 0) < 1.0 and (psnr(pixels, worse).value or 0) > 20.0
    assert note == f"through {through} and back, bicubic"
