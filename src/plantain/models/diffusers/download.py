"""Fetching weights from the hub: the only module that opens a connection, and only if the user allowed it."""

from __future__ import annotations

import shutil
from pathlib import Path

from plantain.models.diffusers.weights import hub_cache
from plantain.pixels.decode import one_line
from plantain.records import InputError


def fetch_files(name: str, revision: str, cache_dir: Path | None, patterns: list[str]) -> None:
    """Download files of a repository into the hub's cache. Raise InputError if the hub does not return them."""
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(name, revision=revision or None, cache_dir=cache_dir, allow_patterns=patterns)
    except (OSError, ValueError) as error:
        raise _not_fetched(name, error) from error


def fetch_pipeline(name: str, revision: str, cache_dir: Path | None, disk_gb: float = 0.0) -> None:
    """Download a pipeline into the hub's cache, or resume an interrupted download.

    Args:
        name, revision, cache_dir: as for the hub.
        disk_gb: size of the weights, if known.

    Raises:
        InputError: the hub does not return them, or the disk is too small.
    """
    from diffusers import DiffusionPipeline

    cache = hub_cache(cache_dir)
    disk = next(folder for folder in (cache, *cache.parents) if folder.is_dir())
    blobs = cache / f"models--{name.replace('/', '--')}" / "blobs"
    have = sum(blob.stat().st_size for blob in blobs.iterdir() if blob.is_file()) if blobs.is_dir() else 0
    missing, free = disk_gb * 1e9 - have, shutil.disk_usage(disk).free
    if missing > free:
        raise InputError(
            f"{name}: needs {missing / 1e9:.1f} GB more on the disk of {disk}, which has {free / 1e9:.1f} GB left; "
            "free some, or name another disk with providers.diffusers.cache_dir"
        )
    try:
        DiffusionPipeline.download(name, revision=revision or None, cache_dir=cache_dir)
    except (OSError, ValueError) as error:
        raise _not_fetched(name, error) from error


def _not_fetched(name: str, error: BaseException) -> InputError:
    return InputError(
        f"{name}: could not be fetched from the hub: {one_line(str(error))}; gated weights need a token in HF_TOKEN "
        "and their conditions accepted on their page"
    )
