"""Fetching weights from the hub: the only place that opens a connection, and only when the user allowed it."""

from __future__ import annotations

from pathlib import Path

from plantain.pixels.decode import one_line
from plantain.records import InputError


def fetch_pipeline(name: str, revision: str, cache_dir: Path | None) -> None:
    """Puts the files of a pipeline into the hub's cache.

    Raises:
        InputError: the hub could not be reached, or does not hand them out.
    """
    from diffusers import DiffusionPipeline

    try:
        DiffusionPipeline.download(name, revision=revision or None, cache_dir=cache_dir)
    except (OSError, ValueError) as error:
        raise InputError(_why(name, error)) from error


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
