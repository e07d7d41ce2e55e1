"""What the learned metrics need from a network: arrays in, arrays out, and a name that says whose weights these are.

The metrics themselves import no framework. Adapters with real weights are in `clip`, `inception`, `lpips` and
`reward`; tests pass closed forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from plantain.metrics.inputs import check_rgb
from plantain.pixels.arrays import Floats, Image


@runtime_checkable
class ImageEncoder(Protocol):
    """Maps images to feature vectors.

    `name` says architecture and weights, e.g. "inception-v3-2015-12-05"; a metric's published name is used
    only with the weights that it was published with.
    """

    name: str

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.floating]:
        """Features (n, d) of uint8 RGB images (H, W, 3), each prepared as the network was trained."""
        ...


@runtime_checkable
class ImageTextEncoder(ImageEncoder, Protocol):
    """Maps images and texts into one space."""

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.floating]:
        """Features (n, d) of the texts."""
        ...

    def truncated(self, text: str) -> bool:
        """Whether the network sees only the beginning of this text."""
        ...


@runtime_checkable
class PerceptualNetwork(Protocol):
    """A learned distance of two images, such as LPIPS."""

    name: str

    def distance(self, before: npt.NDArray[np.float32], after: npt.NDArray[np.float32]) -> float:
        """Distance of two float32 images (1, 3, H, W) in [-1, 1]; 0 for equal ones."""
        ...


@runtime_checkable
class RewardModel(Protocol):
    """A learned score of how well an image fits a text."""

    name: str

    def reward(self, image: Image, text: str) -> float:
        """The reward of a uint8 RGB image (H, W, 3); higher is better."""
        ...


class RememberingEncoder:
    """An encoder that embeds once what several metrics of one sample ask for, one after the other."""

    def __init__(self, encoder: ImageTextEncoder, most: int = 16) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._most = most
        self._images: dict[int, tuple[Image, npt.NDArray[np.floating]]] = {}
        self._texts: dict[str, npt.NDArray[np.floating]] = {}

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.floating]:
        return np.stack([self._image(image) for image in images])

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.floating]:
        return np.stack([self._text(text) for text in texts])

    def truncated(self, text: str) -> bool:
        return self._encoder.truncated(text)

    def _image(self, image: Image) -> npt.NDArray[np.floating]:
        _, row = self._images.pop(id(image), None) or (image, self._encoder.images([image])[0])
        self._images[id(image)] = image, row  # the image is held, or its id could become another's
        if len(self._images) > self._most:
            del self._images[next(iter(self._images))]
        return row

    def _text(self, text: str) -> npt.NDArray[np.floating]:
        row = self._texts.pop(text, None)
        self._texts[text] = self._encoder.texts([text])[0] if row is None else row
        if len(self._texts) > self._most:
            del self._texts[next(iter(self._texts))]
        return self._texts[text]


def label(metric: str, published: frozenset[str], network: str) -> str:
    """The metric's name if `network` has the weights it was published with, else "metric:network".

    Example:
        >>> label("fid", frozenset({"inception-v3-2015-12-05"}), "random-projection")
        'fid:random-projection'
    """
    return metric if network in published else f"{metric}:{network}"


def features(encoder: ImageEncoder, images: Sequence[Image], batch: int = 32) -> Floats:
    """Features (n, d) of all images, computed in batches.

    Raises:
        ValueError: no images, one that is none, or the encoder gave something other than one finite row per image.
    """
    if not images:
        raise ValueError("no images to encode")
    parts = []
    for start in range(0, len(images), batch):
        chunk = [check_rgb(image, "image") for image in images[start : start + batch]]
        rows = np.asarray(encoder.images(chunk), np.float64)
        if rows.ndim != 2 or rows.shape[0] != len(chunk) or not np.isfinite(rows).all():
            raise ValueError(
                f"encoder {encoder.name} gave {rows.shape} for {len(chunk)} images, or not finite"
            )
        parts.append(rows)
    return np.concatenate(parts)
