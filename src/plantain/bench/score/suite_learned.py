"""The learned metrics of a benchmark, where their networks' weights are on this machine; nothing is downloaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plantain.bench.score.suite import NO_TRUTH, Case, Detail, SuiteMetric
from plantain.metrics.learned import LPIPS_WEIGHTS, REWARD_WEIGHTS, lpips, reward
from plantain.metrics.networks.encoders import (
    Image,
    ImageEncoder,
    ImageTextEncoder,
    PerceptualNetwork,
    RewardModel,
    label,
)
from plantain.metrics.similarity import CLIP_WEIGHTS, dalign, isim, talign
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, Score, unscored

CLIP = "openai/clip-vit-large-patch14"
NO_DESCRIPTION = "the sample has no description of the change"
Measured = Callable[[Case, Pixels], tuple[Score, Detail]]
NEEDS_TORCH = "needs the torch extra: pip install 'plantain[torch]'"


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks at hand; None where there is none.

    Attributes:
        clip: images and texts; perceptual: LPIPS; reward: ImageReward; features: of FID and KID.
        why_not: (metrics concerned, why they are not measured), in a line each.
    """

    clip: ImageTextEncoder | None = None
    perceptual: PerceptualNetwork | None = None
    reward: RewardModel | None = None
    features: ImageEncoder | None = None
    why_not: tuple[tuple[str, str], ...] = ()

    def but(self, metrics: str, reason: str) -> Networks:
        """The same, with a reason why some metrics are not measured."""
        return replace(self, why_not=(*self.why_not, (metrics, reason)))


def find_networks(
    wanted: set[str], *, clip: str = CLIP, inception: Path | None = None, inception_sha256: str | None = None
) -> Networks:
    """Loads what the wanted metrics need, from this machine only.

    Args:
        wanted: names of metrics; nothing is loaded for others.
        clip: weights of CLIP: a name on the Hugging Face hub that was downloaded before, or a folder.
        inception: TorchScript file of the Inception network of FID; it cannot be found by itself.
        inception_sha256: hash of the published file; without it FID and KID carry the file's own name.

    Raises:
        InputError: the Inception file has another hash.
    """
    networks = Networks()
    if any(name.startswith("clip_") for name in wanted):
        with_clip = _clip(clip)
        networks = (
            networks.but("clip", with_clip)
            if isinstance(with_clip, str)
            else replace(networks, clip=with_clip)
        )
    if "lpips" in wanted:
        lp = _lpips()
        networks = networks.but("lpips", lp) if isinstance(lp, str) else replace(networks, perceptual=lp)
    if any(name.startswith("image_reward") for name in wanted):
        model = _reward()
        networks = (
            networks.but("image_reward", model) if isinstance(model, str) else replace(networks, reward=model)
        )
    if wanted & {"fid", "kid"}:
        encoder = _inception(inception, inception_sha256)
        networks = (
            networks.but("fid and kid", encoder)
            if isinstance(encoder, str)
            else replace(networks, features=encoder)
        )
    return networks


def learned_metrics(networks: Networks, wanted: set[str]) -> list[SuiteMetric]:
    """The wanted metrics that these networks can measure, each under the name that its weights allow."""
    made: list[SuiteMetric] = []
    if networks.perceptual is not None:
        made.append(_lpips_metric(networks.perceptual))
    if networks.clip is not None:
        made += _clip_metrics(networks.clip)
    if networks.reward is not None:
        made += [_reward_metric(networks.reward, described) for described in (False, True)]
    return [metric for metric in made if metric.name.partition(":")[0] in wanted]


def _has(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def _clip(weights: str) -> ImageTextEncoder | str:
    if not _has("torch", "transformers"):
        return NEEDS_TORCH
    if not Path(weights).is_dir() and not _in_hub_cache(weights):
        return f"the weights of {weights} are not on this machine (nothing is downloaded unasked)"
    from plantain.metrics.networks.clip import ClipEncoder

    try:
        return ClipEncoder(weights, local_files_only=True)
    except (OSError, ValueError) as error:
        return f"the weights of {weights} cannot be loaded: {str(error).splitlines()[0]}"


def _in_hub_cache(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json"), str)


def _lpips() -> PerceptualNetwork | str:
    if not _has("torch", "torchvision", "lpips"):
        return "needs torch, torchvision and lpips: pip install 'plantain[torch]' torchvision lpips"
    import torch

    folder = Path(torch.hub.get_dir()) / "checkpoints"
    if not any(folder.glob("alexnet-*.pth")):
        return f"the weights of AlexNet are not in {folder} (nothing is downloaded unasked)"
    from plantain.metrics.networks.lpips import LpipsNetwork

    return LpipsNetwork()


def _reward() -> RewardModel | str:
    if not _has("torch", "ImageReward"):
        return "needs torch and ImageReward: install the package from its repository"
    file = Path("~/.cache/ImageReward/ImageReward.pt").expanduser()
    if not file.exists():
        return f"the weights are not at {file} (nothing is downloaded unasked)"
    from plantain.metrics.networks.reward import ImageRewardModel

    return ImageRewardModel()


def _inception(path: Path | None, sha256: str | None) -> ImageEncoder | str:
    if not _has("torch"):
        return NEEDS_TORCH
    if path is None:
        return "needs the file of the Inception network: --inception FILE"
    if not path.is_file():
        raise InputError(f"--inception: {path}: no such file")
    from plantain.metrics.networks.inception import InceptionEncoder

    return InceptionEncoder(path, sha256)


# --- metrics --------------------------------------------------------------------------------------


class _Remembered:
    """An encoder that embeds each image and text of one case once."""

    def __init__(self, encoder: ImageTextEncoder) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._case: Case | None = None
        self._images: dict[int, tuple[Image, npt.NDArray[np.floating]]] = {}
        self._texts: dict[str, npt.NDArray[np.floating]] = {}

    def of(self, case: Case) -> _Remembered:
        """Itself, having forgotten every other case."""
        if self._case is not case:
            self._case, self._images, self._texts = case, {}, {}
        return self

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.floating]:
        rows = []
        for image in images:
            if id(image) not in self._images:
                self._images[id(image)] = (image, self._encoder.images([image])[0])
            rows.append(self._images[id(image)][1])
        return np.stack(rows)

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.floating]:
        for text in texts:
            if text not in self._texts:
                self._texts[text] = self._encoder.texts([text])[0]
        return np.stack([self._texts[text] for text in texts])

    def truncated(self, text: str) -> bool:
        return self._encoder.truncated(text)


def _lpips_metric(network: PerceptualNetwork) -> SuiteMetric:
    def measure(case: Case, output: Pixels) -> tuple[Score, Detail]:
        if case.truth is None:
            return unscored(NO_TRUTH), {}
        return lpips(case.truth, output, network), {"network": network.name}

    return SuiteMetric(label("lpips", LPIPS_WEIGHTS, network.name), f"1 {network.name}", measure, alone=True)


def _clip_metrics(encoder: ImageTextEncoder) -> list[SuiteMetric]:
    remembered = _Remembered(encoder)

    def similarity(case: Case, output: Pixels) -> tuple[Score, Detail]:
        if case.truth is None:
            return unscored(NO_TRUTH), {}
        return isim(output, case.truth, remembered.of(case)), {"network": encoder.name}

    def named(name: str) -> str:
        return label(name, CLIP_WEIGHTS, encoder.name)

    version = f"1 {encoder.name}"
    made = [SuiteMetric(named("clip_isim"), version, similarity, alone=True)]
    for described in (False, True):
        suffix = "_d" if described else ""
        for name, direction in (("clip_talign", False), ("clip_dalign", True)):
            measure = _with_text(remembered, described, direction)
            made.append(SuiteMetric(named(name + suffix), version, measure, alone=True))
    return made


def _with_text(encoder: _Remembered, described: bool, direction: bool) -> Measured:
    def measure(case: Case, output: Pixels) -> tuple[Score, Detail]:
        text = case.sample.detailed if described else case.sample.prompt
        if not text:
            return unscored(NO_DESCRIPTION), {}
        known = encoder.of(case)
        detail: Detail = {"network": encoder.name, "text_cut": encoder.truncated(text)}
        if direction:
            return dalign(output, case.before, text, known), detail
        return talign(output, text, known), detail

    return measure


def _reward_metric(model: RewardModel, described: bool) -> SuiteMetric:
    def measure(case: Case, output: Pixels) -> tuple[Score, Detail]:
        text = case.sample.detailed if described else case.sample.prompt
        if not text:
            return unscored(NO_DESCRIPTION), {}
        return reward(output, text, model), {"network": model.name}

    name = label("image_reward_d" if described else "image_reward", REWARD_WEIGHTS, model.name)
    return SuiteMetric(name, f"1 {model.name}", measure, alone=True)
