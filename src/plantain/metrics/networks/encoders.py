"""The interface of networks for the learned metrics: arrays in, arrays out, and the name of the weights.

The metrics import no framework. `available` wraps the published networks; tests use closed forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Image


@runtime_checkable
class ImageEncoder(Protocol):
    """Maps images to feature vectors; `name` states architecture and weights, e.g. "inception-v3-2015-12-05"."""

    name: str

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.floating]:
        """Return features (n, d) of uint8 RGB images (H, W, 3), each prepared as the network was trained."""
        ...


@runtime_checkable
class ImageTextEncoder(ImageEncoder, Protocol):
    """Maps images and texts into one space."""

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.floating]:
        """Return features (n, d) of the texts."""
        ...

    def truncated(self, text: str) -> bool:
        """Return True if the network sees only the beginning of this text."""
        ...


class PerceptualNetwork(Protocol):
    """A learned distance of two images, such as LPIPS."""

    name: str

    def distance(self, before: npt.NDArray[np.float32], after: npt.NDArray[np.float32]) -> float:
        """Return the distance of two float32 images (1, 3, H, W) in [-1, 1]; 0 for equal ones."""
        ...


class RewardModel(Protocol):
    """A learned score of how well an image fits a text."""

    name: str

    def reward(self, image: Image, text: str) -> float:
        """Return the reward of a uint8 RGB image (H, W, 3); higher is better."""
        ...


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks that a measurement can use; None where there is none.

    Attributes:
        clip: images and texts; perceptual: LPIPS; reward: ImageReward; features: of FID and KID;
            encoder: of the Fréchet distance over any network.
        why_not: (metrics concerned, why they are not measured).
    """

    clip: ImageTextEncoder | None = None
    perceptual: PerceptualNetwork | None = None
    reward: RewardModel | None = None
    features: ImageEncoder | None = None
    encoder: ImageEncoder | None = None
    why_not: tuple[tuple[str, str], ...] = ()


class RememberingEncoder:
    """An encoder that embeds once what several metrics of one sample ask for, one after the other."""

    def __init__(self, encoder: ImageTextEncoder, most: int = 32) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._most = most
        self._rows: dict[int | str, tuple[Any, npt.NDArray[np.floating]]] = {}

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.floating]:
        return np.stack([self._row(id(image), image, self._encoder.images) for image in images])

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.floating]:
        return np.stack([self._row(text, text, self._encoder.texts) for text in texts])

    def truncated(self, text: str) -> bool:
        return self._encoder.truncated(text)

    def _row(
        self, key: int | str, item: Any, encode: Callable[[Sequence[Any]], npt.NDArray[np.floating]]
    ) -> npt.NDArray[np.floating]:
        found = self._rows.pop(key, None) or (item, encode([item])[0])
        self._rows[key] = found  # with the image: its id could otherwise become that of another
        if len(self._rows) > self._most:
            del self._rows[next(iter(self._rows))]
        return found[1]


def label(metric: str, published: frozenset[str], network: str) -> str:
    """Return the metric's name if `network` has the weights it was published with, else "metric:network".

    Example:
        >>> label("fid", frozenset({"inception-v3-2015-12-05"}), "random-projection")
        'fid:random-projection'
    """
    return metric if network in published else f"{metric}:{network}"
