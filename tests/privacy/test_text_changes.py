"""What edits do to markers, on a real radiograph with letters as a technologist would place them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.samples import sample_of
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.pixels.prepare import prepare
from plantain.privacy.text import Text, TextReader
from plantain.privacy.text_changes import TextChangeKind, text_changes


def lettered(pixels: np.ndarray, *words: tuple[str, int, int]) -> np.ndarray:
    drawn = pixels.copy()
    for text, x, y in words:
        cv2.putText(drawn, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (240,) * 3, 4, cv2.LINE_AA)
    return drawn


def edited(pixels: np.ndarray) -> np.ndarray:
    return decode(encode_jpeg(pixels))


RIGHT, PORTABLE = ("R", 60, 120), ("PORTABLE", 700, 990)


@pytest.fixture(scope="module")
def plain() -> np.ndarray:
    chest = sample_of("chest_xray")
    return prepare(chest.pixels)[0]


@pytest.fixture(scope="module")
def original(plain: np.ndarray) -> np.ndarray:
    return decode(encode_source(lettered(plain, RIGHT, PORTABLE)))


@pytest.fixture(scope="module")
def known(reader: TextReader, original: np.ndarray) -> tuple[Text, ...]:
    texts = reader.read(original)
    assert {"R", "PORTABLE"} <= {text.text for text in texts}
    return texts


def kinds(changes: tuple[object, ...]) -> set[tuple[str, str]]:
    return {(change.kind.value, change.marker) for change in changes}  # type: ignore[attr-defined]


def test_edits_that_leave_text_alone_are_not_objected_to(
    reader: TextReader, original: np.ndarray, known: tuple[Text, ...]
) -> None:
    y, x = np.mgrid[:1024, :1024]
    opacity = 70.0 * np.exp(-((x - 380.0) ** 2 + (y - 560.0) ** 2) / 9000.0)
    lesion = np.clip(original + opacity[:, :, None], 0, 255).astype(np.uint8)
    noise = np.random.default_rng(0).normal(0.0, 5.0, original.shape)
    noisy = np.clip(original + noise, 0, 255).astype(np.uint8)
    darker = (original * 0.85 + 10).astype(np.uint8)
    for after in (original, lesion, noisy, darker):
        assert text_changes(original, edited(after), known, reader) == ()
        assert text_changes(original, edited(after), None, reader) == ()


def test_a_swapped_marker_is_told(
    reader: TextReader, plain: np.ndarray, original: np.ndarray, known: tuple[Text, ...]
) -> None:
    after = edited(lettered(plain, ("L", 60, 120), PORTABLE))
    for read_before in (known, None):
        (change, *_) = text_changes(original, after, read_before, reader)
        assert change.marker == "R"
        assert change.kind in (TextChangeKind.CHANGED, TextChangeKind.MISSING)


def test_a_moved_marker_is_told(
    reader: TextReader, plain: np.ndarray, original: np.ndarray, known: tuple[Text, ...]
) -> None:
    after = edited(lettered(plain, ("R", 900, 120), PORTABLE))
    assert kinds(text_changes(original, after, known, reader)) == {("moved", "R")}


def test_text_that_a_model_drew_is_told_but_not_repeated(
    reader: TextReader, original: np.ndarray, known: tuple[Text, ...]
) -> None:
    after = edited(lettered(original, ("JOHN DOE", 300, 90)))
    (change,) = text_changes(original, after, known, reader)
    assert (change.kind, change.marker) == (TextChangeKind.ADDED, "")
    assert "JOHN" not in str(change)
    assert 250 < change.box.left < 350
