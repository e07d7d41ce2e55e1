"""A pixel hash follows the picture, not the file."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable

import numpy as np
import PIL.Image
import pytest
import skimage.data

from plantain.pixels.decode import pixel_sha256
from plantain.pixels.encode import encode_jpeg, encode_source


@pytest.mark.parametrize("encode", [encode_jpeg, encode_source])
def test_it_is_the_hash_of_the_rgb_bytes_whatever_else_the_file_has(
    encode: Callable[[np.ndarray], bytes],
) -> None:
    file = encode(np.ascontiguousarray(skimage.data.retina()[:64, :64]))
    shown = np.asarray(PIL.Image.open(io.BytesIO(file)))
    assert pixel_sha256(file) == hashlib.sha256(shown.tobytes()).hexdigest()
