"""Work travels with its pictures apart, each once, under its hash."""

from __future__ import annotations

import hashlib

from plantain.engines.worker import LARGE, pack, unpack
from plantain.roles import EncodedImage


def test_pictures_travel_apart_once_and_come_back_whole() -> None:
    picture = bytes(range(256)) * (LARGE // 256)
    twice = (EncodedImage(picture, "image/png"), {"again": picture, "small": picture[: LARGE - 1]})

    data, files = pack(twice)

    assert files == {hashlib.sha256(picture).hexdigest(): picture}
    assert picture not in data and len(data) < 2 * LARGE
    assert unpack(data, files) == twice
