"""InstructDiffusion's published checkpoint, one file in CompVis's layout, as a folder that its method runs.

Nothing else is published of it: no tokenizer and no settings of its parts. Both are Stable Diffusion 1's, and come from
any folder of that model. diffusers reads the layout (`from_single_file`); a file with a missing weight is refused here.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from diffusers import (
    EulerAncestralDiscreteScheduler,
    StableDiffusionInstructPix2PixPipeline,
    UNet2DConditionModel,
)
from diffusers.loaders.single_file_utils import load_single_file_checkpoint

from plantain.pixels.decode import one_line
from plantain.records import InputError

FIRST_LAYER = "model.diffusion_model.input_blocks.0.0.weight"
PARTS = {
    "model.diffusion_model.": "a UNet",
    "first_stage_model.": "a VAE",
    "cond_stage_model.": "a text encoder",
}
CHANNELS = 8
"""Input channels of its UNet: four of the noisy latent, four of the original's."""

CARD = """---
license: mit
---
# InstructDiffusion

Converted by `plantain models convert` from `{file}`. Its authors publish it under MIT
(github.com/cientgu/InstructDiffusion); its base, Stable Diffusion 1.5, is OpenRAIL-M.
"""


def convert_instruct_diffusion(checkpoint: Path, base: Path, folder: Path) -> None:
    """Convert a checkpoint of InstructDiffusion into a pipeline for `diffusers/medebench-instruct-diffusion@FOLDER`.

    Args:
        checkpoint: the published file: a `.ckpt`, read without executing its code, or `.safetensors`.
        base: a diffusers folder of Stable Diffusion 1 or InstructPix2Pix, for tokenizer and settings.
        folder: the pipeline's new folder.

    Raises:
        InputError: the file cannot be read, is another model, or has missing weights; or the base is invalid.
    """
    try:
        state: dict[str, torch.Tensor] = load_single_file_checkpoint(str(checkpoint))
    except (OSError, ValueError, RuntimeError, pickle.UnpicklingError) as error:
        raise InputError(f"{checkpoint}: cannot be read as a checkpoint: {one_line(str(error))}") from error
    for prefix, part in PARTS.items():
        if not any(name.startswith(prefix) for name in state):
            raise InputError(f"{checkpoint}: holds no weights of {part} ({prefix}...)")
    channels = state[FIRST_LAYER].shape[1] if FIRST_LAYER in state else 0
    if channels != CHANNELS:
        raise InputError(
            f"{checkpoint}: is not InstructDiffusion: its UNet takes {channels} channels, not {CHANNELS}"
        )
    try:
        unet = UNet2DConditionModel.from_single_file(
            dict(state), config=str(base), subfolder="unet", in_channels=CHANNELS, local_files_only=True
        )
        pipe = StableDiffusionInstructPix2PixPipeline.from_single_file(
            str(checkpoint),
            config=str(base),
            local_files_only=True,
            unet=unet,
            scheduler=EulerAncestralDiscreteScheduler(
                beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear"
            ),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
        pipe.save_pretrained(folder)
    except NotImplementedError as error:  # torch's word for a weight that was never filled
        raise InputError(f"{checkpoint}: has no weights for some parts of {base}") from error
    except (OSError, ValueError, RuntimeError, TypeError, AttributeError) as error:
        raise InputError(
            f"{checkpoint}: cannot be loaded into the parts of {base}: {one_line(str(error))}"
        ) from error
    (folder / "README.md").write_text(CARD.format(file=checkpoint.name), encoding="utf-8")
