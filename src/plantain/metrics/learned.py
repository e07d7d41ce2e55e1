"""Scores that a trained network gives directly: LPIPS between two images, and the reward of an image for a text."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from plantain.metrics.inputs import check_images, check_rgb
from plantain.metrics.metric import Measured, MetricSample
from plantain.metrics.networks.encoders import PerceptualNetwork, RewardModel
from plantain.metrics.networks.metric import NetworkMetric
from plantain.pixels.arrays import Image, Pixels
from plantain.records import Score, unscored

LPIPS_WEIGHTS = frozenset({"lpips-alex-0.1", "lpips-vgg-0.1", "lpips-squeeze-0.1"})
REWARD_WEIGHTS = frozenset({"ImageReward-v1.0"})


def signed(image: Image) -> npt.NDArray[np.float32]:
    """A uint8 RGB image (H, W, 3) as float32 (1, 3, H, W) in [-1, 1], the range that LPIPS was trained on."""
    check_rgb(image, "LPIPS")
    planes = image.transpose(2, 0, 1)[np.newaxis].astype(np.float32)
    return np.ascontiguousarray(planes / np.float32(127.5) - np.float32(1.0))


def check_signed(pixels: npt.NDArray[np.float32]) -> None:
    """Refuses what cannot be a natural image in [-1, 1]; adapters call it on what they are given.

    Raises:
        ValueError: values outside [-1, 1], or 8-bit levels cut to [0, 1] (every value a multiple of 1 / 255).
    """
    low, high = float(pixels.min()), float(pixels.max())
    if low < -1.0 or high > 1.0:
        raise ValueError(f"LPIPS needs values in [-1, 1], not {low:.3g} to {high:.3g}")
    if low >= 0.0 and np.allclose(pixels * 255.0, np.rint(pixels * 255.0), atol=1e-3) and high > 0.0:
        # In the right range an 8-bit level v is 2 v / 255 - 1, an odd multiple of 1 / 255; [0, 1] has even ones too.
        levels = np.rint(pixels * 255.0).astype(np.int64)
        if (levels % 2 == 0).any():
            raise ValueError("LPIPS was given an image in [0, 1]; it needs [-1, 1]")


def lpips(before: Image, after: Image, network: PerceptualNetwork) -> Score:
    """Learned perceptual distance (Zhang et al. 2018), 0 for equal images, lower is better.

    Args:
        before, after: uint8 RGB (H, W, 3), same shape.
        network: the network; only one with the published weights reports as "lpips" (`LPIPS.name`).

    Raises:
        ValueError: the images differ in shape.
    """
    before, after = check_images(before, after)
    value = float(network.distance(signed(before), signed(after)))
    return Score(value) if math.isfinite(value) else unscored(f"{network.name} gave {value}")


def reward(image: Image, text: str, model: RewardModel) -> Score:
    """How well an image fits a text by a reward model such as ImageReward (Xu et al. 2023); higher is better.

    Args:
        image: uint8 RGB (H, W, 3).

    Raises:
        ValueError: it is no such image.
    """
    value = float(model.reward(check_rgb(image, "image"), text))
    return Score(value) if math.isfinite(value) else unscored(f"{model.name} gave {value}")


class LPIPS(NetworkMetric[PerceptualNetwork]):
    """`lpips` of an output and the real image after."""

    name, label, digits = "lpips", "LPIPS with the truth", 3
    higher_is_better, low, needs = False, 0.0, ("truth",)
    uses, published = "perceptual", LPIPS_WEIGHTS

    def update(self, before: Image, after: Image) -> Score:
        """Scores one pair and keeps the score for `compute`."""
        return self.keep(lpips(before, after, self.network))

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        assert sample.truth is not None
        return lpips(sample.truth, output, self.network), {"network": self.network.name}


class Reward(NetworkMetric[RewardModel]):
    """`reward` of an output for the prompt."""

    name, label, needs = "image_reward", "ImageReward", ("prompt",)
    uses, published = "reward", REWARD_WEIGHTS

    def update(self, image: Image, text: str) -> Score:
        """Scores one sample and keeps the score for `compute`."""
        return self.keep(reward(image, text, self.network))

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        return reward(output, self.text(sample), self.network), {"network": self.network.name}


class RewardOfDescription(Reward):
    """The same, for the description of the change."""

    name, label, needs = "image_reward_d", "ImageReward for the description", ("detailed",)
