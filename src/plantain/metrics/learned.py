"""Scores that a trained network gives directly: LPIPS between two images, and the reward of an image for a text."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from plantain.metrics.metric import (
    Measured,
    MetricSample,
    NetworkMetric,
    PerceptualNetwork,
    RewardModel,
    check_images,
    check_rgb,
)
from plantain.pixels.arrays import Image, Pixels
from plantain.records import Score, unscored

LPIPS_WEIGHTS = frozenset({"lpips-alex-0.1"})
REWARD_WEIGHTS = frozenset({"ImageReward-v1.0"})


def signed(image: Image) -> npt.NDArray[np.float32]:
    """Convert a uint8 RGB image (H, W, 3) to the input of LPIPS: float32 (1, 3, H, W) in [-1, 1]."""
    check_rgb(image, "LPIPS")
    planes = image.transpose(2, 0, 1)[np.newaxis].astype(np.float32)
    return np.ascontiguousarray(planes / np.float32(127.5) - np.float32(1.0))


def lpips(before: Image, after: Image, network: PerceptualNetwork) -> Score:
    """Return LPIPS, the learned perceptual distance (Zhang et al. 2018): 0 for equal images, lower is better.

    Args:
        before, after: uint8 RGB (H, W, 3), same shape.
        network: the network; the metric is only called "lpips" with the published weights.

    Returns:
        The distance; unscored if the network gives NaN or infinity.

    Raises:
        ValueError: the arrays are not such images.
    """
    before, after = check_images(before, after)
    value = float(network.distance(signed(before), signed(after)))
    return Score(value) if math.isfinite(value) else unscored(f"{network.name} gave {value}")


def reward(image: Image, text: str, model: RewardModel) -> Score:
    """Return how well an image fits a text by a reward model such as ImageReward (Xu et al. 2023); higher is better.

    Args:
        image: uint8 RGB (H, W, 3).

    Returns:
        The reward, which has no fixed range; unscored if the model gives NaN or infinity.

    Raises:
        ValueError: the array is not such an image.
    """
    value = float(model.reward(check_rgb(image, "image"), text))
    return Score(value) if math.isfinite(value) else unscored(f"{model.name} gave {value}")


class LPIPS(NetworkMetric[PerceptualNetwork]):
    """LPIPS between an output and the real image after; 0 for equal images."""

    name, label, digits = "lpips", "LPIPS with the truth", 3
    higher_is_better, low, needs = False, 0.0, ("truth",)
    uses, published = "perceptual", LPIPS_WEIGHTS

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        assert sample.truth is not None
        return lpips(sample.truth, output, self.network), {"network": self.network.name}


class Reward(NetworkMetric[RewardModel]):
    """ImageReward of an output for the prompt; higher is better."""

    name, label, needs = "image_reward", "ImageReward", ("prompt",)
    uses, published = "reward", REWARD_WEIGHTS

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        return reward(output, self.text(sample), self.network), {"network": self.network.name}


class RewardOfDescription(Reward):
    """ImageReward of an output for the description of the change; higher is better."""

    name, label, needs = "image_reward_d", "ImageReward for the description", ("detailed",)
