from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import PIL.Image
import pytest
import skimage.data
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pixels.images import colour, grey, save
from plantain.pixels.decode import BadImage, decode, pixel_sha256
from plantain.pixels.encode import (
    XMP_PACKET,
    encode_jpeg,
    encode_source,
    is_normal_form,
    normalise,
    prepare,
    resize,
    restore,
    settle_grey,
)
from plantain.records import Geometry

SQUARE = colour(64, 64)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow on short tags


def test_encode_jpeg_is_quality_95_without_subsampling_and_only_the_mark() -> None:
    image = Image.open(io.BytesIO(encode_jpeg(SQUARE)))
    other = Image.open(io.BytesIO(save(Image.fromarray(SQUARE), "JPEG", quality=95, subsampling=0)))
    assert image.quantization == other.quantization
    assert [component[1:3] for component in image.layer] == [(1, 1)] * 3
    assert set(image.info) == {"jfif", "jfif_version", "jfif_unit", "jfif_density", "xmp"}
    assert image.info["xmp"] == XMP_PACKET


def test_encode_jpeg_mark_is_well_formed_and_states_synthetic() -> None:
    text = Image.open(io.BytesIO(encode_jpeg(SQUARE))).info["xmp"]
    root = ElementTree.fromstring(text)
    description = next(root.iter("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}Description"))
    kind = description.get("{http://iptc.org/std/Iptc4xmpExt/2008-02-29/}DigitalSourceType")
    assert kind == "http://cv.iptc.org/newscodes/digitalsourcetype/compositeSynthetic"
    assert "Not for clinical use" in "".join(root.itertext())


@pytest.mark.parametrize(
    "data",
    [
        encode_source(SQUARE),
        encode_jpeg(SQUARE) + b"\0",
        encode_jpeg(colour(64, 63)),
        save(Image.fromarray(SQUARE), "JPEG", quality=94, subsampling=0, xmp=XMP_PACKET),
        b"",
    ],
)
def test_is_normal_form_accepts_nothing_else(data: bytes) -> None:
    assert not is_normal_form(data, side=64)


def test_normalise_marks_source_form_without_encoding_again() -> None:
    assert normalise(encode_source(SQUARE), side=64) == encode_jpeg(SQUARE)


@given(st.integers(0, 2**32 - 1), st.sampled_from([32, 64, 96]), st.sampled_from(["PNG", "JPEG", "WEBP"]))
def test_normalise_is_idempotent(seed: int, size: int, kind: str) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (size, size, 3), np.uint8)
    once = normalise(save(Image.fromarray(noise), kind), side=64)
    assert is_normal_form(once, side=64)
    assert normalise(once, side=64) is once
    assert decode(once).shape == (64, 64, 3)


def test_normalise_refuses_oblong_images_and_other_data() -> None:
    with pytest.raises(BadImage, match="64x63 pixels returned"):
        normalise(save(Image.fromarray(colour(64, 63)), "PNG"), side=64)
    with pytest.raises(BadImage, match="edited image"):
        normalise(b"I am sorry, I cannot edit medical images.")


@pytest.mark.parametrize("encode", [encode_jpeg, encode_source])
def test_pixel_sha256_depends_only_on_the_rgb_bytes(encode: Callable[[np.ndarray], bytes]) -> None:
    file = encode(np.ascontiguousarray(skimage.data.retina()[:64, :64]))
    shown = np.asarray(PIL.Image.open(io.BytesIO(file)))
    assert pixel_sha256(file) == hashlib.sha256(shown.tobytes()).hexdigest()


SIZES = st.integers(1, 200)


def noise(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, 3), np.uint8)


def content(geometry: Geometry) -> np.ndarray:
    """Return the part of a square of 64 pixels that shows the original."""
    mask = np.zeros((64, 64), bool)
    rows = slice(geometry.top, geometry.top + geometry.inner_height)
    mask[rows, geometry.left : geometry.left + geometry.inner_width] = True
    return mask


@given(SIZES, SIZES)
def test_prepare_geometry_is_inside_the_square_and_inverts(width: int, height: int) -> None:
    prepared, geometry = prepare(noise(width, height), 64)
    assert prepared.shape == (64, 64, 3)
    assert (geometry.width, geometry.height, geometry.mode) == (width, height, "pad")
    assert max(geometry.inner_width, geometry.inner_height) == 64
    assert 0 <= geometry.left <= geometry.left + geometry.inner_width <= 64
    assert 0 <= geometry.top <= geometry.top + geometry.inner_height <= 64
    assert restore(prepared, geometry).shape == (height, width, 3)
    mask = content(geometry)
    assert mask.sum() == geometry.inner_width * geometry.inner_height
    assert not prepared[~mask].any()


@given(st.integers(1, 64), st.booleans())
def test_restore_without_resizing_is_exact(short: int, tall: bool) -> None:
    original = noise(short, 64) if tall else noise(64, short)
    assert np.array_equal(restore(*prepare(original, 64)), original)


def test_pad_keeps_the_aspect_and_centres() -> None:
    _, geometry = prepare(noise(1841 // 4, 1955 // 4), 1024)
    # 460x488 scaled by 1024/488 = 2.098: 965 wide, (1024 - 965) // 2 = 29 on the left.
    assert (geometry.inner_width, geometry.inner_height, geometry.left, geometry.top) == (965, 1024, 29, 0)


def test_prepare_shrinks_without_aliasing() -> None:
    lines = np.zeros((512, 512, 3), np.uint8)
    lines[:, ::2] = 200
    # Every target pixel averages whole periods: the mean, without moire.
    assert np.unique(resize(lines, 128, 128)).tolist() == [100]


def test_settle_grey_makes_channels_equal_only_for_grey_images() -> None:
    gray = np.repeat(grey(200, 200)[:, :, None], 3, axis=2)
    assert settle_grey(gray) is gray
    rng = np.random.default_rng(5)
    tinted = np.clip(gray.astype(int) + rng.integers(-1, 2, gray.shape), 0, 255).astype(np.uint8)
    settled = settle_grey(tinted)
    assert np.array_equal(settled[..., 0], settled[..., 1])
    assert np.abs(settled.astype(int) - gray).max() <= 1
    marked = gray.copy()
    marked[:20, :20] = (255, 0, 0)
    assert settle_grey(marked) is marked
    assert np.array_equal(settle_grey(colour(64, 64)), colour(64, 64))


def test_prepare_makes_oblong_pixels_square_and_restore_undoes_it() -> None:
    """Pixels twice as high as wide (PS3.3, C.7.6.3.1.7): 256 x 128 of them are a square field."""
    pixels = noise(256, 128)
    square, geometry = prepare(pixels, 256, aspect=2.0)
    assert geometry == Geometry(256, 128, "pad", 0, 0, 256, 256)
    assert restore(square, geometry).shape == pixels.shape
    mask = np.zeros((128, 256, 3), np.uint8)
    mask[40:60, 100:150] = 255
    square, geometry = prepare(mask, 256, aspect=2.0)
    assert np.array_equal(square[80:120, 100:150] > 127, np.full((40, 50, 3), True))
    assert np.array_equal(restore(square, geometry) > 127, mask > 127)
