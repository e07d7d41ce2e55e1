"""Similarities with hand-made embeddings whose cosines are known, and networks that check what they are given."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plantain.metrics.learned import LPIPS, Reward, check_signed, lpips, reward, signed
from plantain.metrics.networks.encoders import ImageTextEncoder, features
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


def test_classes_carry_the_encoder_and_count_cut_texts():
    metrics = ISim(Compass()), TAlign(Compass()), DAlign(Compass())
    assert [m.name for m in metrics] == ["clip_isim:compass", "clip_talign:compass", "clip_dalign:compass"]
    _, align, direction = metrics
    align.update(patch(60, 80), "green")
    align.update(patch(60, 80), "red")
    direction.update(patch(1, 1), patch(1, 1), "red")
    assert (align.compute().value, align.cut) == (pytest.approx(0.7), 1)
    assert direction.compute().coverage == 0.0


def test_features_do_not_depend_on_the_batch():
    images = [patch(i, 255 - i) for i in range(70)]
    assert (features(Compass(), images) == features(Compass(), images, batch=7)).all()
    with pytest.raises(ValueError, match="no images"):
        features(Compass(), [])


def test_features_that_are_not_finite_are_refused():
    class Broken(Compass):
        def images(self, images):
            return np.full((len(images), 2), np.nan)

    with pytest.raises(ValueError, match="not finite"):
        features(Broken(), [patch(1, 1)])


class Euclid:
    """A stand-in for LPIPS that refuses what LPIPS would silently misread."""

    name = "euclid"

    def distance(self, before, after):
        check_signed(before)
        check_signed(after)
        assert before.shape[:2] == (1, 3)
        return float(np.sqrt(np.mean((before - after) ** 2)))


def test_lpips_is_given_its_range_and_never_its_name_without_its_weights():
    white, black = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)
    assert lpips(white, black, Euclid()).value == 2.0
    metric = LPIPS(Euclid())
    assert metric.update(white, white).value == 0.0
    assert (metric.name, metric.higher_is_better) == ("lpips:euclid", False)
    with pytest.raises(ValueError, match="differ in shape"):
        lpips(white, white[1:], Euclid())


def test_images_in_another_range_are_recognised():
    image = np.random.default_rng(0).integers(0, 256, (9, 9, 3)).astype(np.uint8)
    check_signed(signed(image))
    check_signed(signed(np.full((4, 4, 3), 200, np.uint8)))
    zero_to_one = (image / np.float32(255)).astype(np.float32)
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        check_signed(zero_to_one)
    with pytest.raises(ValueError, match="not 0 to"):
        check_signed(np.maximum(image.astype(np.float32), 0) * (image > 9))
    with pytest.raises(ValueError, match="uint8"):
        signed(zero_to_one)


def test_reward_keeps_the_models_name_and_refuses_nan():
    class Length:
        name = "length"

        def reward(self, image, text):
            return len(text) if text else math.nan

    metric = Reward(Length())
    assert reward(patch(1, 1), "abc", Length()).value == 3.0
    metric.update(patch(1, 1), "")
    assert metric.name == "image_reward:length"
    assert metric.compute().unscored == {"length gave nan": 1}
