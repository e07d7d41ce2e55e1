"""Letters too small for the prepared image, and letters turned or mirrored: drawn on a real radiograph, and read."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.samples import sample_of
from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.prepare import prepare
from plantain.privacy import small_text
from plantain.privacy.small_text import LARGE, MOST_CANVASES, fine_strokes, small_texts
from plantain.privacy.text import TextKind, TextReader
from plantain.privacy.text_reader import open_reader, why_no_reader


@pytest.fixture(scope="module")
def reader() -> TextReader:
    found = open_reader()
    if found is None:
        pytest.skip(why_no_reader())
    return found


@pytest.fixture(scope="module")
def film() -> Pixels:
    """The chest radiograph of the packages, 1955x1841 as it was stored."""
    return sample_of("chest_xray").pixels


def lettered(pixels: Pixels, text: str, left: int, bottom: int, size: float, width: int = 1) -> Pixels:
    drawn = pixels.copy()
    cv2.putText(drawn, text, (left, bottom), cv2.FONT_HERSHEY_SIMPLEX, size, (235,) * 3, width, cv2.LINE_AA)
    return drawn


def test_fine_strokes_are_letters_and_not_anatomy(film: Pixels) -> None:
    assert sum(box.width * box.height for box in fine_strokes(film)) < 0.05 * film.shape[0] * film.shape[1]
    # Capitals of this face are 22 pixels high at size 1: these have 8.
    drawn = lettered(film, "MARY SMITH 1951", 600, 900, 8 / 22)
    assert any(box.overlaps(Box(600, 892, 100, 8)) for box in fine_strokes(drawn))


def test_letters_that_the_prepared_image_loses_are_read_in_the_original(
    film: Pixels, reader: TextReader
) -> None:
    large = cv2.resize(film, None, fx=1.6, fy=1.6, interpolation=cv2.INTER_CUBIC)
    # 9 pixels of 2946: 3 of the prepared 1024, where the best of readers sees a grey line.
    drawn = lettered(large, "SMITH, MARY", 1500, 2200, 9 / 22)
    found = [text for text in small_texts(drawn, reader) if text.kind.identifying]
    assert any("MARY" in text.text.upper() for text in found)
    assert all(text.box.overlaps(Box(1490, 2180, 140, 40)) for text in found)
    assert small_texts(large, reader) == () or not any(
        text.kind.identifying for text in small_texts(large, reader)
    )


def test_grey_and_colour_are_read_alike(film: Pixels, reader: TextReader) -> None:
    drawn = lettered(film, "MARY SMITH", 300, 1500, 12 / 22)
    colour = small_texts(drawn, reader)
    assert [text.kind for text in colour] == [TextKind.NAME]
    assert small_texts(np.ascontiguousarray(drawn[:, :, 0]), reader) == colour


def test_no_image_takes_more_than_a_few_canvases(film: Pixels) -> None:
    class Counting:
        name = "counting"

        def __init__(self) -> None:
            self.sizes: list[tuple[int, ...]] = []

        def read(self, pixels: Pixels) -> tuple[()]:
            self.sizes.append(pixels.shape)
            return ()

    rng = np.random.default_rng(0)
    crowded = film.copy()
    for _ in range(4000):
        left, bottom = int(rng.integers(0, 1700)), int(rng.integers(20, 1940))
        cv2.putText(crowded, "WXM", (left, bottom), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (250,) * 3, 1)
    counting = Counting()
    assert small_texts(crowded, counting) == ()
    assert 0 < len(counting.sizes) <= MOST_CANVASES
    assert max(max(size) for size in counting.sizes) <= 1024


def test_images_of_the_prepared_size_hold_nothing_smaller(film: Pixels) -> None:
    class Never:
        name = "never"

        def read(self, pixels: Pixels) -> tuple[()]:
            raise AssertionError("was asked")

    prepared = prepare(film)[0]
    assert max(prepared.shape) < LARGE * 1024
    assert small_texts(lettered(prepared, "MARY SMITH", 100, 100, 0.4), Never()) == ()


def test_a_huge_scan_is_shrunk_first_and_told_in_its_own_pixels(
    film: Pixels, reader: TextReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = lettered(film, "MARY SMITH", 300, 1500, 16 / 22)
    monkeypatch.setattr(small_text, "MOST_PIXELS", film.shape[0] * film.shape[1] // 2)
    (name,) = [text for text in small_texts(drawn, reader) if text.kind.identifying]
    assert name.box.overlaps(Box(300, 1484, 140, 16))
    assert abs(name.box.left - 300) < 20


@pytest.mark.parametrize("shape", [(33, 5000), (5000, 33), (1300, 3, 3)])
def test_odd_shapes_are_searched_like_any_other(shape: tuple[int, ...], reader: TextReader) -> None:
    assert small_texts(np.full(shape, 120, np.uint8), reader) == ()


def turned(pixels: Pixels, how: str) -> Pixels:
    view = {
        "half": pixels[::-1, ::-1],
        "quarter": np.rot90(pixels),
        "mirrored": pixels[:, ::-1],
        "flipped": pixels[::-1],
    }
    return np.ascontiguousarray(view[how])


@pytest.mark.parametrize("how", ["half", "quarter", "mirrored", "flipped"])
def test_a_name_is_seen_whichever_way_a_film_was_scanned(how: str, film: Pixels, reader: TextReader) -> None:
    page = turned(lettered(film[400:900, 300:900], "MARY SMITH", 60, 250, 1.2, 2), how)
    (name,) = [text for text in reader.read(page) if text.kind.identifying]
    assert name.sure >= 0.6
    plain = turned(np.ascontiguousarray(film[400:900, 300:900]), how)
    assert not any(text.kind.identifying for text in reader.read(plain))
