"""Loads the networks that metrics need from this machine; nothing is downloaded."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

from plantain.files.installing import install_line
from plantain.metrics.metric import registered
from plantain.metrics.networks.adapters import (
    ClipEncoder,
    ImageRewardModel,
    InceptionEncoder,
    LpipsNetwork,
    TransformersEncoder,
)
from plantain.metrics.networks.encoders import Networks
from plantain.records import InputError

CLIP = "openai/clip-vit-large-patch14"


def find_networks(
    wanted: set[str],
    *,
    clip: str = CLIP,
    inception: Path | None = None,
    inception_sha256: str | None = None,
    encoder: Path | None = None,
) -> Networks:
    """Load the networks of the requested metrics.

    Args:
        wanted: names of metrics; nothing is loaded for others.
        clip: weights of CLIP: a name on the Hugging Face hub that was downloaded before, or a folder.
        inception: TorchScript file of the Inception network of FID.
        inception_sha256: hash of the published file; without it FID and KID have the file's own name.
        encoder: folder of a vision encoder of transformers, for `frechet_encoder`.

    Raises:
        InputError: the Inception file is missing or has another hash, or the encoder cannot be loaded.
    """
    known = registered()
    used = {known[name].uses for name in wanted if name in known}
    if wanted & {"fid", "kid"}:
        used.add("features")
    if "frechet_encoder" in wanted:
        used.add("encoder")
    loaders = (
        ("clip", "clip", lambda: _clip(clip)),
        ("perceptual", "lpips", _lpips),
        ("reward", "image_reward", _reward),
        ("features", "fid and kid", lambda: _inception(inception, inception_sha256)),
        ("encoder", "frechet_encoder", lambda: _encoder(encoder)),
    )
    networks = Networks()
    for field, metrics, load in loaders:
        if field in used:
            found: Any = load()
            reason = isinstance(found, str)
            networks = networks.but(metrics, found) if reason else replace(networks, **{field: found})
    return networks


def _missing(*modules: str) -> bool:
    return any(importlib.util.find_spec(module) is None for module in modules)


def _clip(weights: str) -> ClipEncoder | str:
    if _missing("torch", "transformers"):
        return f"needs the torch extra: {install_line('torch')}"
    from huggingface_hub import try_to_load_from_cache

    if not Path(weights).is_dir() and not isinstance(try_to_load_from_cache(weights, "config.json"), str):
        return f"the weights of {weights} are not on this machine (nothing is downloaded unasked)"
    try:
        return ClipEncoder(weights)
    except (OSError, ValueError) as error:
        return f"the weights of {weights} cannot be loaded: {str(error).splitlines()[0]}"


def _lpips() -> LpipsNetwork | str:
    if _missing("torch", "torchvision", "lpips"):
        return f"needs torch, torchvision and lpips: {install_line('torch')} torchvision lpips"
    import torch

    folder = Path(torch.hub.get_dir()) / "checkpoints"
    if not any(folder.glob("alexnet-*.pth")):
        return f"the weights of AlexNet are not in {folder} (nothing is downloaded unasked)"
    return LpipsNetwork()


def _reward() -> ImageRewardModel | str:
    if _missing("torch", "ImageReward"):
        return "needs torch and ImageReward: install the package from its repository"
    file = Path("~/.cache/ImageReward/ImageReward.pt").expanduser()
    if not file.exists():
        return f"the weights are not at {file} (nothing is downloaded unasked)"
    return ImageRewardModel()


def _inception(path: Path | None, sha256: str | None) -> InceptionEncoder | str:
    if _missing("torch"):
        return f"needs the torch extra: {install_line('torch')}"
    if path is None:
        return "needs the file of the Inception network: --inception FILE"
    if not path.is_file():
        raise InputError(f"--inception: {path}: no such file")
    return InceptionEncoder(path, sha256)


def _encoder(folder: Path | None) -> TransformersEncoder | str:
    if _missing("torch", "transformers"):
        return f"needs the torch extra: {install_line('torch')}"
    if folder is None:
        return "needs the folder of a vision encoder: --encoder FOLDER"
    return TransformersEncoder(folder)
