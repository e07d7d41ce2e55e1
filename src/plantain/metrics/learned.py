"""Scores that a trained network gives directly: LPIPS between two images, and the reward of an image for a text."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from plantain.metrics.metric import (
    Measured,
    MetricSample,
    NetworkMetric,
    check_images,
    check_rgb,
)
from plantain.metrics.networks import ImageRewardModel, LpipsNetwork
from plantain.pixels.arrays import Image, Pixels
from plantain.records import Score, unscored

LPIPS_WEIGHTS = frozenset({"lpips-alex-0.1"})
REWARD_WEIGHTS = frozenset({"ImageReward-v1.0"})


def signed(image: Image) -> npt.NDArray[np.float32]:
    """Convert a uint8 RGB image (H, W, 3) to the input of LPIPS: float32 (1, 3, H, W) in [-1, 1]."""
    check_rgb(image, "LPIPS")
    planes = image.transpose(2, 0, 1)[np.newaxis].astype(np.float32)
    return np.ascontiguousarray(planes / np.float32(127.5) - np.float32(1.0))


def finite(value: float, network: str) -> Score:
    """Return a network's value as a score; unscored if it is NaN or infinite."""
    return Score(value) if math.isfinite(value) else unscored(f"{network} gave {value}")


class LPIPS(NetworkMetric[LpipsNetwork]):
    """LPIPS, the learned perceptual distance (Zhang et al. 2018), between an output and the real image after.

    0 for equal images; unscored if the network gives NaN or infinity.
    """

    name, label, digits = "lpips", "LPIPS with the truth", 3
    higher_is_better, low, needs = False, 0.0, ("truth",)
    uses, published = "perceptual", LPIPS_WEIGHTS

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        assert sample.truth is not None
        before, after = check_images(sample.truth, output)
        value = float(self.network.distance(signed(before), signed(after)))
        return finite(value, self.network.name), {"network": self.network.name}


class Reward(NetworkMetric[ImageRewardModel]):
    """ImageReward (Xu et al. 2023) of an output for the prompt; higher is better, without a fixed range."""

    name, label, needs = "image_reward", "ImageReward", ("prompt",)
    uses, published = "reward", REWARD_WEIGHTS

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        value = float(self.network.reward(check_rgb(output, "image"), self.text(sample)))
        return finite(value, self.network.name), {"network": self.network.name}


class RewardOfDescription(Reward):
    """ImageReward of an output for the description of the change; higher is better."""

    name, label, needs = "image_reward_d", "ImageReward for the description", ("detailed",)
