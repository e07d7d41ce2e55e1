from __future__ import annotations

import asyncio
import base64

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.content import picture
from plantain.models.hosted.images import from_base64, from_square, to_base64, to_square
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.roles import EncodedImage


def png(pixels: np.ndarray) -> EncodedImage:
    done, data = cv2.imencode(".png", pixels[:, :, ::-1])
    assert done
    return EncodedImage(data.tobytes(), "image/png")


def noise(width: int, height: int) -> np.ndarray:
    return np.random.default_rng([width, height]).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_square_goes_and_comes_untouched() -> None:
    original = png(noise(200, 200))
    sent, geometry = asyncio.run(to_square(original))
    assert sent is original
    assert geometry is None
    other = picture(".png", 512, 512)
    assert asyncio.run(from_square(other, geometry)) == EncodedImage(other, "image/png")


@settings(max_examples=25)
@given(st.integers(128, 400), st.integers(1, 400))
def test_there_and_back_is_exact_whatever_the_shape(longer: int, shorter: int) -> None:
    for width, height in ((longer, min(longer, shorter)), (min(longer, shorter), longer)):
        pixels = noise(width, height)
        sent, geometry = asyncio.run(to_square(png(pixels)))
        back = asyncio.run(from_square(sent.data, geometry))
        assert np.array_equal(decode_untrusted(back.data, "back"), pixels)


def test_larger_square_comes_back_at_the_originals_size() -> None:
    pixels = noise(300, 150)
    _, geometry = asyncio.run(to_square(png(pixels)))
    back = asyncio.run(from_square(picture(".png", 600, 600), geometry))
    assert decode_untrusted(back.data, "back").shape == pixels.shape


@pytest.mark.parametrize("data", [b"", b"text", picture(".png", 300, 299), picture(".png", 64, 64)])
def test_what_is_no_square_picture_is_refused(data: bytes) -> None:
    with pytest.raises(BadImage, match="the editor returned"):
        asyncio.run(from_square(data, None))


@given(st.binary())
def test_base64_there_and_back(data: bytes) -> None:
    assert from_base64(to_base64(data)) == data
    assert (
        from_base64(base64.urlsafe_b64encode(data).decode().rstrip("=")) == data
    )  # ProtoJSON takes this as well


@pytest.mark.parametrize("text", ["%%%", "abcde", "a b c d"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(BadImage, match="not valid base64"):
        from_base64(text)
