"""Stored outputs, and the baselines."""

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


def retina(width: int, height: int) -> np.ndarray:
    return cv2.resize(skimage.data.retina(), (width, height), interpolation=cv2.INTER_AREA)


def test_png_without_metadata_is_stored_unchanged() -> None:
    """A plain file of Pillow is; a file with text chunks or trailing bytes is encoded again."""
    pixels, plain = retina(65, 101), io.BytesIO()
    Image.fromarray(pixels).save(plain, "PNG", compress_level=9)
    png, decoded, note = at_own_size(plain.getvalue(), (65, 101))
    assert (png, note) == (plain.getvalue(), "")
    assert np.array_equal(decoded, pixels)
    words, with_text = PngInfo(), io.BytesIO()
    words.add_text("patient", "somebody")
    Image.fromarray(pixels).save(with_text, "PNG", pnginfo=words)
    for data in (with_text.getvalue(), plain.getvalue() + b"behind"):
        png, _, _ = at_own_size(data, (65, 101))
        assert png != data and b"somebody" not in png and b"behind" not in png
        assert np.array_equal(decode(png), pixels)


def test_other_size_is_resized_as_pillow_does_with_a_note() -> None:
    pixels = retina(130, 202)
    png, _, note = at_own_size(encode_png(pixels), (65, 101))
    expected = np.asarray(Image.fromarray(pixels).resize((65, 101), Image.Resampling.BICUBIC))
    assert np.array_equal(decode(png), expected)
    assert note.startswith("resized from 130x202: bicubic to the size of the previous image")


@settings(max_examples=40, deadline=None)
@given(st.integers(64, 300), st.integers(64, 300), st.integers(64, 300), st.integers(64, 300))
def test_another_ratio_of_sides_is_malformed_from_one_percent(w: int, h: int, ow: int, oh: int) -> None:
    data = encode_png(np.zeros((oh, ow, 3), np.uint8))
    if abs((ow / oh) / (w / h) - 1) > 0.01:
        with pytest.raises(BadImage, match="another ratio of sides"):
            at_own_size(data, (w, h))
    else:
        assert decode(at_own_size(data, (w, h))[0]).shape == (h, w, 3)


@pytest.mark.parametrize(
    ("size", "through"),
    # 700 * 512 / 900 = 398.2, floored to 392; images up to 512 pixels are halved
    [((512, 512), "256x256"), ((336, 512), "168x256"), ((700, 900), "392x512")],
)
def test_baselines_lose_quality_as_named(size: tuple[int, int], through: str) -> None:
    pixels = retina(*size)
    (copied, _), (resized, note), (compressed, _) = (TRICKS[name](pixels) for name in BASELINES[:3])
    assert np.array_equal(copied, pixels)
    for worse in (resized, compressed):
        assert worse.shape == pixels.shape
        assert (ssim(pixels, worse).value or 0) < 1.0 and (psnr(pixels, worse).value or 0) > 20.0
    assert note == f"through {through} and back, bicubic"
