"""Similarities with hand-made embeddings whose cosines are known, and networks that check their inputs."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from bench.small_bench import Distance
from plantain.metrics.learned import LPIPS, Reward
from plantain.metrics.metric import ImageTextEncoder
from plantain.metrics.similarity import DAlign, ISim, cosine, talign
from plantain.records import Score, unscored


class Compass:
    """Embed an image by the mean of its red and green channels, a text by the direction that it names."""

    name = "compass"

    def images(self, images):
        return np.stack([image[..., :2].reshape(-1, 2).mean(0) for image in images])

    def texts(self, texts):
        return np.array([{"red": (1.0, 0.0), "green": (0.0, 3.0), "": (0.0, 0.0)}[text] for text in texts])

    def truncated(self, text):
        return False


def patch(red: int, green: int) -> np.ndarray:
    image = np.zeros((6, 4, 3), np.uint8)
    image[..., 0], image[..., 1] = red, green
    return image


def test_similarities_are_the_known_cosines():
    encoder = Compass()
    assert isinstance(encoder, ImageTextEncoder)
    red = SimpleNamespace(truth=patch(90, 0), before=patch(100, 0), prompt="green")
    for output, expected in ((patch(30, 0), 1.0), (patch(50, 50), math.sqrt(0.5))):
        assert ISim(encoder).measure(red, output)[0].value == pytest.approx(expected)
    assert talign(patch(60, 80), "green", encoder).value == pytest.approx(0.8)
    # Unit embeddings: (0.6, 0.8) - (1, 0) = (-0.4, 0.8), cosine with green 0.8 / sqrt(0.8).
    expected = 0.8 / math.sqrt(0.8)
    assert DAlign(encoder).measure(red, patch(60, 80))[0].value == pytest.approx(expected)


def test_an_edit_of_nothing_has_no_direction():
    same = SimpleNamespace(before=patch(9, 7), prompt="red")
    assert (
        DAlign(Compass()).measure(same, patch(9, 7))[0].reason
        == "nothing was edited: the change has no direction"
    )
    assert talign(patch(0, 0), "red", Compass()).reason == "zero vector: no direction"
    with pytest.raises(ValueError, match="differ in length"):
        cosine([1, 2], [1])


def test_lpips_gets_pixels_from_minus_1_to_1():
    white, black = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)
    assert LPIPS(Distance()).measure(SimpleNamespace(truth=white), black)[0].value == 2.0
    with pytest.raises(ValueError, match="differ in shape"):
        LPIPS(Distance()).measure(SimpleNamespace(truth=white), white[1:])


def test_reward_refuses_nan():
    class Length:
        name = "length"

        def reward(self, image, text):
            return len(text) if text else math.nan

    for text, expected in (("abc", Score(3.0)), ("", unscored("length gave nan"))):
        assert Reward(Length()).measure(SimpleNamespace(prompt=text), patch(1, 1))[0] == expected
