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

from pixels.pictures import colour, save
from plantain.pixels.decode import BadImage, decode, pixel_sha256
from plantain.pixels.encode import XMP_PACKET, encode_jpeg, encode_source, is_normal_form, normalise

SQUARE = colour(64, 64)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow on short tags


def test_encode_jpeg_is_quality_95_without_subsampling_and_only_the_mark() -> None:
    image = Image.open(io.BytesIO(encode_jpeg(SQUARE)))
    other = Image.open(io.BytesIO(save(Image.fromarray(SQUARE), "JPEG", quality=95, subsampling=0)))
    assert image.quantization == other.quantization
    assert [component[1:3] for component in image.layer] == [(1, 1)] * 3
    assert set(image.info) == {"jfif", "jfif_version", "jfif_unit", "jfif_density", "xmp"}
    assert image.info["xmp"] == XMP_PACKET


def test_encode_jpeg_mark_is_well_formed_and_says_synthetic() -> None:
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


def test_normalise_strips_metadata() -> None:
    data = save(Image.fromarray(SQUARE), "JPEG", comment=b"MRN 123456", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0")
    assert b"MRN" in data
    assert b"MRN" not in normalise(data, side=64)


def test_normalise_refuses_what_is_not_square_or_no_image() -> None:
    with pytest.raises(BadImage, match="64x63 pixels returned"):
        normalise(save(Image.fromarray(colour(64, 63)), "PNG"), side=64)
    with pytest.raises(BadImage, match="edited image"):
        normalise(b"I am sorry, I cannot edit medical images.")


@pytest.mark.parametrize("encode", [encode_jpeg, encode_source])
def test_it_is_the_hash_of_the_rgb_bytes_whatever_else_the_file_has(
    encode: Callable[[np.ndarray], bytes],
) -> None:
    file = encode(np.ascontiguousarray(skimage.data.retina()[:64, :64]))
    shown = np.asarray(PIL.Image.open(io.BytesIO(file)))
    assert pixel_sha256(file) == hashlib.sha256(shown.tobytes()).hexdigest()
