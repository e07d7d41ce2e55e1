"""Fetching weights from the hub: the only place that opens a connection, and only when the user allowed it."""

from __future__ import annotations

import shutil
from pathlib import Path

from plantain.models.diffusers.weights import hub_cache
from plantain.pixels.decode import one_line
from plantain.records import InputError


def fetch_card(name: str, revision: str, cache_dir: Path | None) -> None:
    """Puts the weights' own page into the hub's cache: it says under which licence they come. Some have none.

    Raises:
        InputError: the hub could not be reached, or does not hand it out.
    """
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(name, revision=revision or None, cache_dir=cache_dir, allow_patterns=["README.md"])
    except (OSError, ValueError) as error:
        raise InputError(_why(name, error)) from error


def fetch_pipeline(name: str, revision: str, cache_dir: Path | None, disk_gb: float = 0.0) -> None:
    """Puts the files of a pipeline into the hub's cache; what an earlier, cut off download left is gone on with.

    Args:
        name, revision, cache_dir: as the hub knows them.
        disk_gb: what the weights take, where that is known.

    Raises:
        InputError: the hub could not be reached, does not hand them out, or the disk has no room for them.
    """
    from diffusers import DiffusionPipeline

    _check_room(name, cache_dir, disk_gb)
    try:
        DiffusionPipeline.download(name, revision=revision or None, cache_dir=cache_dir)
    except (OSError, ValueError) as error:
        raise InputError(_why(name, error)) from error


def _check_room(name: str, cache_dir: Path | None, disk_gb: float) -> None:
    cache = hub_cache(cache_dir)
    there = next(folder for folder in (cache, *cache.parents) if folder.is_dir())
    blobs = cache / f"models--{name.replace('/', '--')}" / "blobs"
    have = sum(blob.stat().st_size for blob in blobs.iterdir() if blob.is_file()) if blobs.is_dir() else 0
    lacking = disk_gb * 1e9 - have
    free = shutil.disk_usage(there).free
    if lacking > free:
        raise InputError(
            f"{name}: needs {lacking / 1e9:.1f} GB more on the disk of {there}, which has {free / 1e9:.1f} GB left; "
            "make room, or name another disk with providers.diffusers.cache_dir"
        )


def fetch_lora(name: str, revision: str, cache_dir: Path | None) -> None:
    """The same for LoRA weights."""
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(
            name,
            revision=revision or None,
            cache_dir=cache_dir,
            allow_patterns=["*.safetensors", "README.md"],
        )
    except (OSError, ValueError) as error:
        raise InputError(_why(name, error)) from error


def _why(name: str, error: BaseException) -> str:
    return (
        f"{name}: could not be fetched from the hub: {one_line(str(error))}; gated weights need a token in HF_TOKEN "
        "and their conditions accepted on their page"
    )
