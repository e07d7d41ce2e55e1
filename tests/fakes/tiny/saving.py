"""A folder of random weights that a method runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from diffusers import DiffusionPipeline

from fakes.tiny import flux, qwen, stable_diffusion

BUILDERS: dict[str, Callable[[int], DiffusionPipeline]] = {
    "instruct-pix2pix": stable_diffusion.tiny_instruct_pix2pix,
    "instruct-diffusion": stable_diffusion.tiny_instruct_pix2pix,
    "imagic": stable_diffusion.tiny_stable_diffusion,
    "sdxl-instruct-pix2pix": stable_diffusion.tiny_sdxl_instruct_pix2pix,
    "icedit": flux.tiny_flux_fill,
    "flux-kontext": flux.tiny_flux_kontext,
    "flux2": flux.tiny_flux2,
    "flux2-klein": flux.tiny_flux2_klein,
    "sd-inpaint": stable_diffusion.tiny_stable_diffusion_inpaint,
    "sdxl-inpaint": stable_diffusion.tiny_sdxl_inpaint,
}
SAVERS: dict[str, Callable[[Path, int], None]] = {
    "qwen-image-edit": lambda folder, seed: qwen.save_tiny_qwen_image_edit(folder, plus=False, seed=seed),
    "qwen-image-edit-plus": lambda folder, seed: qwen.save_tiny_qwen_image_edit(folder, plus=True, seed=seed),
}
"""Method -> what builds, or saves, a pipeline that it runs; the engine's tests go through every method."""


def save_tiny(method: str, folder: Path, seed: int = 0) -> None:
    """Write a tiny pipeline that the method runs, as `save_pretrained` does.

    Args:
        method: name of an `EditingMethod`.
        folder: where to; made when it is not there.
        seed: of the weights.
    """
    if method in SAVERS:
        SAVERS[method](folder, seed)
    else:
        BUILDERS[method](seed).save_pretrained(folder)
