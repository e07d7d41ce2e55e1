"""Which networks are on this machine, and loading those that a metric needs; nothing is ever downloaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from plantain.files.installing import install_line
from plantain.metrics.networks.at_hand import Networks
from plantain.metrics.networks.encoders import (
    ImageEncoder,
    ImageTextEncoder,
    PerceptualNetwork,
    RewardModel,
)
from plantain.metrics.registry import registered
from plantain.records import InputError

CLIP = "openai/clip-vit-large-patch14"


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
    known = registered()
    used = {known[name].uses for name in wanted if name in known} | {
        "features" for _ in wanted & {"fid", "kid"}
    }
    loaders: dict[str, tuple[str, Callable[[], Any]]] = {
        "clip": ("clip", lambda: _clip(clip)),
        "perceptual": ("lpips", _lpips),
        "reward": ("image_reward", _reward),
        "features": ("fid and kid", lambda: _inception(inception, inception_sha256)),
    }
    networks = Networks()
    for field, (metrics, load) in loaders.items():
        if field in used:
            found = load()
            networks = (
                networks.but(metrics, found)
                if isinstance(found, str)
                else replace(networks, **{field: found})
            )
    return networks


def _has(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def _clip(weights: str) -> ImageTextEncoder | str:
    if not _has("torch", "transformers"):
        return _needs_torch()
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
        return f"needs torch, torchvision and lpips: {install_line('torch')} torchvision lpips"
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
        return _needs_torch()
    if path is None:
        return "needs the file of the Inception network: --inception FILE"
    if not path.is_file():
        raise InputError(f"--inception: {path}: no such file")
    from plantain.metrics.networks.inception import InceptionEncoder

    return InceptionEncoder(path, sha256)


def _needs_torch() -> str:
    return f"needs the torch extra: {install_line('torch')}"
