from __future__ import annotations

import base64

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.content import picture
from plantain.models.hosted.pictures import UNCHANGED, from_base64, from_square, to_base64, to_square
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
    sent, geometry = to_square(original)
    assert sent is original
    assert geometry is None
    other = picture(".png", 512, 512)
    back = from_square(other, original, geometry)
    assert (back.image.data, back.note) == (other, "")


@settings(max_examples=25)
@given(st.integers(128, 400), st.integers(1, 400))
def test_there_and_back_is_exact_whatever_the_shape(longer: int, shorter: int) -> None:
    for width, height in ((longer, min(longer, shorter)), (min(longer, shorter), longer)):
        pixels = noise(width, height)
        sent, geometry = to_square(png(pixels))
        back = from_square(sent.data, png(pixels), geometry)
        assert np.array_equal(decode_untrusted(back.image.data, "back"), pixels)
        assert back.note == UNCHANGED


def test_larger_square_comes_back_at_the_originals_size() -> None:
    pixels = noise(300, 150)
    _, geometry = to_square(png(pixels))
    back = from_square(picture(".png", 600, 600), png(pixels), geometry)
    assert decode_untrusted(back.image.data, "back").shape == pixels.shape
    assert back.note == ""


@pytest.mark.parametrize("data", [b"", b"text", picture(".png", 300, 299), picture(".png", 64, 64)])
def test_what_is_no_square_picture_is_refused(data: bytes) -> None:
    with pytest.raises(BadImage, match="the editor returned"):
        from_square(data, png(noise(200, 200)), None)


def test_same_pixels_in_another_file_are_noted() -> None:
    pixels = noise(256, 256)
    done, webp = cv2.imencode(".webp", pixels[:, :, ::-1], [cv2.IMWRITE_WEBP_QUALITY, 101])
    assert done
    back = from_square(webp.tobytes(), png(pixels), None)
    assert (back.note, back.image.media_type) == (UNCHANGED, "image/webp")


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
