"""A folder of random weights that a method runs, and the card that says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from diffusers import DiffusionPipeline

from plantain.models.diffusers.tiny import flux, qwen, stable_diffusion
from plantain.models.diffusers.weights import NOISE

BUILDERS: dict[str, Callable[[int], DiffusionPipeline]] = {
    "instruct-pix2pix": stable_diffusion.tiny_instruct_pix2pix,
    "instruct-diffusion": stable_diffusion.tiny_instruct_pix2pix,
    "imagic": stable_diffusion.tiny_stable_diffusion,
    "ledits": lambda seed: stable_diffusion.tiny_stable_diffusion(seed, levels=3),
    "sdxl-instruct-pix2pix": stable_diffusion.tiny_sdxl_instruct_pix2pix,
    "icedit": flux.tiny_flux_fill,
    "flux-kontext": flux.tiny_flux_kontext,
    "flux-kontext-inpaint": flux.tiny_flux_kontext,
    "flux2": flux.tiny_flux2,
    "flux2-klein": flux.tiny_flux2_klein,
    "sd-inpaint": stable_diffusion.tiny_stable_diffusion_inpaint,
    "sdxl-inpaint": stable_diffusion.tiny_sdxl_inpaint,
}
SAVERS: dict[str, Callable[[Path, int], None]] = {
    "qwen-image-edit": lambda folder, seed: qwen.save_tiny_qwen_image_edit(folder, plus=False, seed=seed),
    "qwen-image-edit-plus": lambda folder, seed: qwen.save_tiny_qwen_image_edit(folder, plus=True, seed=seed),
    "qwen-image-edit-inpaint": lambda folder, seed: qwen.save_tiny_qwen_image_edit(
        folder, plus=False, seed=seed
    ),
    "longcat-image-edit": qwen.save_tiny_longcat,
}
"""Method -> what builds, or saves, a pipeline that it runs; the engine's tests go through every method."""

CARD = """---
license: cc0-1.0
tags: [{tag}]
---
# Noise

Random weights in the classes of {name} (seed {seed}), made by `plantain models make-tiny`. They were never trained:
what they draw is noise. They show that a way of running is in order, and nothing about any model.
"""


def save_tiny(method: str, folder: Path, seed: int = 0) -> None:
    """Writes a tiny pipeline that the method runs, as `save_pretrained` does.

    Args:
        method: name of an `EditingMethod`.
        folder: where to; made when it is not there.
        seed: of the weights.
    """
    if method in SAVERS:
        SAVERS[method](folder, seed)
    else:
        BUILDERS[method](seed).save_pretrained(folder)


def write_noise_card(folder: Path, name: str, seed: int) -> None:
    """Writes the README by which a folder of random weights is known."""
    (folder / "README.md").write_text(CARD.format(name=name, seed=seed, tag=NOISE), encoding="utf-8")
