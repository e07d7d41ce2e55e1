"""CLIP-like similarities of an edit: with the ground truth, with a text, and of the change with a text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plantain.metrics.metric import (
    ImageEncoder,
    ImageTextEncoder,
    Measured,
    MetricSample,
    NetworkMetric,
    check_finite,
    check_rgb,
)
from plantain.pixels.arrays import Floats, Image, Pixels
from plantain.records import Score, unscored

CLIP_WEIGHTS = frozenset({"openai/clip-vit-large-patch14"})
"""The network of MedEBench; metrics of another network carry its name."""


def cosine(first: npt.ArrayLike, second: npt.ArrayLike) -> Score:
    """Return the cosine similarity of two vectors, in [-1, 1]; unscored if one is zero, ValueError if sizes differ."""
    a, b = check_finite(first, "first").ravel(), check_finite(second, "second").ravel()
    if a.shape != b.shape:
        raise ValueError(f"vectors differ in length: {a.size} and {b.size}")
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    if length == 0.0:
        return unscored("zero vector: no direction")
    return Score(float(np.clip((a @ b) / length, -1.0, 1.0)))


def talign(edited: Image, text: str, encoder: ImageTextEncoder) -> Score:
    """Return the text alignment, in [-1, 1]: cosine of the embeddings of an edit, uint8 RGB (H, W, 3), and a text."""
    return cosine(_image(encoder, edited), _text(encoder, text))


def _image(encoder: ImageEncoder, image: Image) -> Floats:
    return _unit(check_finite(encoder.images([check_rgb(image, "image")]), encoder.name)[0])


def _text(encoder: ImageTextEncoder, text: str) -> Floats:
    return _unit(check_finite(encoder.texts([text]), encoder.name)[0])


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


class ISim(NetworkMetric[ImageEncoder]):
    """CLIP similarity of an output and the real image after; in [-1, 1]."""

    name, label, low, high = "clip_isim", "CLIP similarity with the truth", -1.0, 1.0
    needs, uses, published, column = ("truth",), "clip", CLIP_WEIGHTS, "ISim"

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        assert sample.truth is not None
        found = cosine(_image(self.network, output), _image(self.network, sample.truth))
        return found, {"network": self.network.name}


class TAlign(NetworkMetric[ImageTextEncoder]):
    """CLIP similarity of an output and the prompt; the detail `text_cut` is True if the prompt was too long."""

    name, label, low, high = "clip_talign", "CLIP alignment with the text", -1.0, 1.0
    needs, uses, published, column = ("prompt",), "clip", CLIP_WEIGHTS, "TAlign_P"

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        text = self.text(sample)
        detail = {"network": self.network.name, "text_cut": self.network.truncated(text)}
        return self._score(sample, output, text), detail

    def _score(self, sample: MetricSample, output: Pixels, text: str) -> Score:
        return talign(output, text, self.network)


class TAlignOfDescription(TAlign):
    """CLIP similarity of an output and the description of the change; in [-1, 1]."""

    name, label, needs = "clip_talign_d", "CLIP alignment with the description", ("detailed",)
    column = "TAlign_D"


class DAlign(TAlign):
    """How well an output's change fits the prompt (MedEBench): the cosine of E(output) - E(before) with E(prompt).

    This is not the directional CLIP similarity of image editing papers, which subtracts a source text too. Unscored
    when the output does not change the image's embedding.
    """

    name, label, column = "clip_dalign", "CLIP direction of the edit", "DAlign_P"

    def _score(self, sample: MetricSample, output: Pixels, text: str) -> Score:
        change = _image(self.network, output) - _image(self.network, sample.before)
        if not np.any(np.abs(change) > 1e-12):
            return unscored("nothing was edited: the change has no direction")
        return cosine(change, _text(self.network, text))


class DAlignOfDescription(DAlign):
    """CLIP similarity of an output's change and the description of the change; in [-1, 1]."""

    name, label, needs = "clip_dalign_d", "CLIP direction of the edit by the description", ("detailed",)
    column = "DAlign_D"
