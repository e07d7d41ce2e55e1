"""A pixel hash follows the picture, not the file."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import PIL.Image
import skimage.data

from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.pixels.likeness import pixel_sha256


def test_metadata_does_not_change_it() -> None:
    pixels = np.ascontiguousarray(skimage.data.retina()[:64, :64])
    assert encode_jpeg(pixels) != encode_source(pixels)
    assert pixel_sha256(encode_jpeg(pixels)) == pixel_sha256(encode_source(pixels))


def test_it_is_the_hash_of_the_rgb_bytes() -> None:
    pixels = np.ascontiguousarray(skimage.data.retina()[:64, :64])
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "PNG")
    assert pixel_sha256(file.getvalue()) == hashlib.sha256(pixels.tobytes()).hexdigest()
