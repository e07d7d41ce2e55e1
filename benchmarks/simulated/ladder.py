"""InstructPix2Pix pipelines of random weights, from tiny to SDXL's size; none of them was ever trained."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from diffusers import (
    AutoencoderKL,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    StableDiffusionInstructPix2PixPipeline,
    StableDiffusionXLInstructPix2PixPipeline,
    UNet2DConditionModel,
)
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from fakes.tiny.parts import tiny_tokenizer
from fakes.tiny.saving import save_tiny

BETAS = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}


@dataclass(frozen=True)
class Rung:
    """One size of pipeline.

    Attributes:
        name: as options say it.
        side: of images and canvas, pixels.
        steps: of denoising.
        images: that are edited.
    """

    name: str
    side: int
    steps: int
    images: int


LADDER = (
    Rung("tiny", 128, 2, 12),
    Rung("sd15", 512, 20, 32),
    Rung("sdxl", 1024, 20, 16),
)


def save(name: str, folder: Path, device: str) -> None:
    """Writes a rung's pipeline: on a GPU in bfloat16, made there, so that it takes seconds."""
    if name == "tiny":
        save_tiny("instruct-pix2pix", folder)
        return
    usual = torch.get_default_dtype()
    try:
        if not device.startswith("cpu"):
            torch.set_default_dtype(torch.bfloat16)
        with torch.device(device):
            networks = networks_of(name)
    finally:
        torch.set_default_dtype(usual)
    tokenizer = tiny_tokenizer()
    if name == "sdxl":
        StableDiffusionXLInstructPix2PixPipeline(
            **networks,
            tokenizer=tokenizer,
            tokenizer_2=tokenizer,
            scheduler=EulerDiscreteScheduler(**BETAS),
            add_watermarker=False,
        ).save_pretrained(folder)
        return
    StableDiffusionInstructPix2PixPipeline(
        **networks,
        tokenizer=tokenizer,
        scheduler=EulerAncestralDiscreteScheduler(**BETAS, steps_offset=1),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder)


def networks_of(name: str) -> dict[str, torch.nn.Module]:
    """The networks of "sd15" or "sdxl", at the sizes of the published weights."""
    torch.manual_seed(0)
    if name == "sd15":
        return {
            "vae": _vae(0.18215),
            "text_encoder": CLIPTextModel(_clip(768, 12, 12, 3072)),
            "unet": UNet2DConditionModel(
                in_channels=8,
                sample_size=64,
                block_out_channels=(320, 640, 1280, 1280),
                cross_attention_dim=768,
                attention_head_dim=8,
            ),
        }
    return {
        "vae": _vae(0.13025),
        "text_encoder": CLIPTextModel(_clip(768, 12, 12, 3072)),
        "text_encoder_2": CLIPTextModelWithProjection(_clip(1280, 32, 20, 5120)),
        "unet": UNet2DConditionModel(
            in_channels=8,
            sample_size=128,
            block_out_channels=(320, 640, 1280),
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            transformer_layers_per_block=(1, 2, 10),
            attention_head_dim=(5, 10, 20),
            cross_attention_dim=2048,
            use_linear_projection=True,
            addition_embed_type="text_time",
            addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=2816,
        ),
    }


def _vae(scaling: float) -> AutoencoderKL:
    return AutoencoderKL(
        block_out_channels=(128, 256, 512, 512),
        layers_per_block=2,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        scaling_factor=scaling,
        force_upcast=False,
    )


def _clip(width: int, layers: int, heads: int, inner: int) -> CLIPTextConfig:
    return CLIPTextConfig(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        projection_dim=width,
    )
