"""Tiny pipelines around a UNet: InstructPix2Pix, Stable Diffusion, SDXL."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from diffusers import (
    DDIMScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    StableDiffusionInpaintPipeline,
    StableDiffusionInstructPix2PixPipeline,
    StableDiffusionPipeline,
    StableDiffusionXLInpaintPipeline,
    StableDiffusionXLInstructPix2PixPipeline,
    UNet2DConditionModel,
)
from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
from transformers import CLIPConfig, CLIPTextModelWithProjection, CLIPVisionConfig

from fakes.tiny.parts import WIDTH, tiny_text_encoder, tiny_tokenizer, tiny_vae


def tiny_unet(in_channels: int = 8, levels: int = 2) -> UNet2DConditionModel:
    """A UNet with cross-attention at every level; one million weights at two levels."""
    return UNet2DConditionModel(
        in_channels=in_channels,
        out_channels=4,
        sample_size=8,
        layers_per_block=1,
        block_out_channels=(32, 64, 64, 64)[:levels],
        norm_num_groups=16,
        cross_attention_dim=WIDTH,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D",) * levels,
        up_block_types=("CrossAttnUpBlock2D",) * levels,
    ).eval()


def tiny_instruct_pix2pix(
    seed: int = 0, words: Sequence[str] = (), in_channels: int = 8
) -> StableDiffusionInstructPix2PixPipeline:
    """InstructPix2Pix; `words` are single tokens of its tokenizer."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer(words)
    return StableDiffusionInstructPix2PixPipeline(
        vae=tiny_vae(),
        text_encoder=tiny_text_encoder(tokenizer),
        tokenizer=tokenizer,
        unet=tiny_unet(in_channels),
        scheduler=EulerAncestralDiscreteScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def tiny_stable_diffusion(seed: int = 0) -> StableDiffusionPipeline:
    """Stable Diffusion, the base of Imagic."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    return StableDiffusionPipeline(
        vae=tiny_vae(),
        text_encoder=tiny_text_encoder(tokenizer),
        tokenizer=tokenizer,
        unet=tiny_unet(4),
        scheduler=DDIMScheduler(
            beta_start=0.00085,
            beta_end=0.012,
            beta_schedule="scaled_linear",
            clip_sample=False,
            steps_offset=1,
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def tiny_stable_diffusion_inpaint(seed: int = 0) -> StableDiffusionInpaintPipeline:
    """Stable Diffusion that also receives the region and its surroundings: nine input channels."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    return StableDiffusionInpaintPipeline(
        vae=tiny_vae(),
        text_encoder=tiny_text_encoder(tokenizer),
        tokenizer=tokenizer,
        unet=tiny_unet(9),
        scheduler=DDIMScheduler(
            beta_start=0.00085,
            beta_end=0.012,
            beta_schedule="scaled_linear",
            clip_sample=False,
            steps_offset=1,
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def tiny_safety_checker(seed: int = 0) -> StableDiffusionSafetyChecker:
    """A safety checker that takes offence at everything: its concepts are of no length, its thresholds below zero."""
    torch.manual_seed(seed)
    vision = CLIPVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        image_size=224,
        patch_size=56,
    )
    checker = StableDiffusionSafetyChecker(CLIPConfig(vision_config=vision.to_dict(), projection_dim=WIDTH))
    with torch.no_grad():
        checker.concept_embeds_weights.fill_(-1.0)
        checker.special_care_embeds_weights.fill_(-1.0)
    return checker.eval()


def tiny_sdxl_instruct_pix2pix(seed: int = 0) -> StableDiffusionXLInstructPix2PixPipeline:
    """InstructPix2Pix on SDXL: two text encoders, and sizes as inputs of the UNet."""
    return StableDiffusionXLInstructPix2PixPipeline(**_sdxl_parts(8, seed), add_watermarker=False)


def tiny_sdxl_inpaint(seed: int = 0) -> StableDiffusionXLInpaintPipeline:
    """SDXL that also receives the region and its surroundings."""
    return StableDiffusionXLInpaintPipeline(**_sdxl_parts(9, seed), add_watermarker=False)


def _sdxl_parts(in_channels: int, seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    first = tiny_text_encoder(tokenizer)
    second = CLIPTextModelWithProjection(first.config).eval()
    unet = UNet2DConditionModel(
        in_channels=in_channels,
        out_channels=4,
        sample_size=8,
        layers_per_block=1,
        block_out_channels=(32, 64),
        norm_num_groups=16,
        cross_attention_dim=2 * WIDTH,
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=WIDTH + 6 * 8,
    )
    return {
        "vae": tiny_vae(),
        "text_encoder": first,
        "text_encoder_2": second,
        "tokenizer": tokenizer,
        "tokenizer_2": tokenizer,
        "unet": unet.eval(),
        "scheduler": EulerDiscreteScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear"
        ),
    }
