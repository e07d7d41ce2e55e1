"""Similarities with hand-made embeddings whose cosines are known, and networks that check what they are given."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from plantain.metrics.learned import LPIPS, Reward, lpips, reward
from plantain.metrics.metric import ImageTextEncoder
from plantain.metrics.similarity import DAlign, ISim, TAlign, cosine, dalign, isim, talign


class Compass:
    """Embeds an image by the mean of its red and green channels, a text by the direction that it names."""

    name = "compass"

    def images(self, images):
        return np.stack([image[..., :2].reshape(-1, 2).mean(0) for image in images])

    def texts(self, texts):
        return np.array([{"red": (1.0, 0.0), "green": (0.0, 3.0), "": (0.0, 0.0)}[text] for text in texts])

    def truncated(self, text):
        return text == "green"


def patch(red: int, green: int) -> np.ndarray:
    image = np.zeros((6, 4, 3), np.uint8)
    image[..., 0], image[..., 1] = red, green
    return image


def test_similarities_are_the_known_cosines():
    encoder = Compass()
    assert isinstance(encoder, ImageTextEncoder)
    assert isim(patch(30, 0), patch(90, 0), encoder).value == pytest.approx(1.0)
    assert isim(patch(50, 50), patch(90, 0), encoder).value == pytest.approx(math.sqrt(0.5))
    assert talign(patch(60, 80), "green", encoder).value == pytest.approx(0.8)
    # Unit embeddings: (0.6, 0.8) - (1, 0) = (-0.4, 0.8), cosine with green 0.8 / sqrt(0.8).
    expected = 0.8 / math.sqrt(0.8)
    assert dalign(patch(60, 80), patch(100, 0), "green", encoder).value == pytest.approx(expected)


def test_an_edit_of_nothing_has_no_direction():
    score = dalign(patch(9, 7), patch(9, 7), "red", Compass())
    assert score.reason == "nothing was edited: the change has no direction"
    assert talign(patch(0, 0), "red", Compass()).reason == "zero vector: no direction"
    with pytest.raises(ValueError, match="differ in length"):
        cosine([1, 2], [1])


@dataclass(frozen=True)
class Sample:
    """An edit's sample as metrics read it."""

    before: np.ndarray
    truth: np.ndarray
    prompt: str
    detailed: str = ""


def test_metrics_have_the_name_of_their_network_and_say_which_texts_it_cut():
    metrics = ISim(Compass()), TAlign(Compass()), DAlign(Compass())
    assert [m.name for m in metrics] == ["clip_isim:compass", "clip_talign:compass", "clip_dalign:compass"]
    sample = Sample(patch(100, 0), patch(90, 0), "green")
    similar, aligned, direction = (metric.measure(sample, patch(60, 80)) for metric in metrics)
    assert similar[0].value == pytest.approx(0.6)
    assert (aligned[0].value, aligned[1]["text_cut"]) == (pytest.approx(0.8), True)
    assert direction[0].value == pytest.approx(0.8 / math.sqrt(0.8))
    assert metrics[1].measure(Sample(patch(1, 1), patch(1, 1), "red"), patch(60, 80))[1]["text_cut"] is False


class Euclid:
    """A network in place of LPIPS: root mean square difference."""

    name = "euclid"

    def distance(self, before, after):
        assert before.shape[:2] == (1, 3)
        return float(np.sqrt(np.mean((before - after) ** 2)))


def test_lpips_gets_pixels_from_minus_1_to_1_and_its_name_only_with_its_weights():
    white, black = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)
    assert lpips(white, black, Euclid()).value == 2.0
    metric = LPIPS(Euclid())
    assert metric.measure(Sample(black, white, ""), white)[0].value == 0.0
    assert (metric.name, metric.higher_is_better) == ("lpips:euclid", False)
    with pytest.raises(ValueError, match="differ in shape"):
        lpips(white, white[1:], Euclid())
    with pytest.raises(ValueError, match="uint8"):
        lpips(white / 255, white / 255, Euclid())


def test_reward_keeps_the_models_name_and_refuses_nan():
    class Length:
        name = "length"

        def reward(self, image, text):
            return len(text) if text else math.nan

    assert reward(patch(1, 1), "abc", Length()).value == 3.0
    assert reward(patch(1, 1), "", Length()).reason == "length gave nan"
    metric = Reward(Length())
    assert metric.measure(Sample(patch(1, 1), patch(1, 1), "ab"), patch(1, 1))[0].value == 2.0
    assert metric.name == "image_reward:length"
