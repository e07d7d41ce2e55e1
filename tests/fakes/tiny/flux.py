"""Tiny FLUX pipelines: Fill, Kontext, and FLUX.2."""

from __future__ import annotations

import torch
from diffusers import (
    AutoencoderKLFlux2,
    FlowMatchEulerDiscreteScheduler,
    Flux2KleinPipeline,
    Flux2Pipeline,
    Flux2Transformer2DModel,
    FluxFillPipeline,
    FluxKontextPipeline,
    FluxTransformer2DModel,
)
from transformers import Mistral3Config, Mistral3ForConditionalGeneration, Qwen3Config, Qwen3ForCausalLM

from fakes.tiny.parts import (
    WIDTH,
    shifted_vae,
    tiny_qwen_tokenizer,
    tiny_t5,
    tiny_text_encoder,
    tiny_tokenizer,
)


def _flux(in_channels: int, out_channels: int, guided: bool = True) -> FluxTransformer2DModel:
    return FluxTransformer2DModel(
        patch_size=1,
        in_channels=in_channels,
        out_channels=out_channels,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=WIDTH,
        guidance_embeds=guided,
        axes_dims_rope=(4, 6, 6),
    ).eval()


def tiny_flux_fill(seed: int = 0) -> FluxFillPipeline:
    """FLUX.1 Fill, the base of ICEdit: it also sees the masked image and the mask."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    encoder, pieces = tiny_t5()
    packed = 4 * 4
    return FluxFillPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=shifted_vae(),
        text_encoder=tiny_text_encoder(tokenizer),
        tokenizer=tokenizer,
        text_encoder_2=encoder,
        tokenizer_2=pieces,
        transformer=_flux(2 * packed + 4 * 64, packed),
    )


def tiny_flux_kontext(seed: int = 0) -> FluxKontextPipeline:
    """FLUX.1 Kontext."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    encoder, pieces = tiny_t5()
    return FluxKontextPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=shifted_vae(),
        text_encoder=tiny_text_encoder(tokenizer),
        tokenizer=tokenizer,
        text_encoder_2=encoder,
        tokenizer_2=pieces,
        transformer=_flux(16, 16),
    )


def tiny_flux2_klein(seed: int = 0) -> Flux2KleinPipeline:
    """FLUX.2 klein, with a text encoder of one layer."""
    torch.manual_seed(seed)
    tokenizer = tiny_qwen_tokenizer()
    encoder = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
        )
    )
    return Flux2KleinPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_flux2_vae(),
        text_encoder=encoder.eval(),
        tokenizer=tokenizer,
        transformer=_flux2(guided=False),
        is_distilled=True,
    )


def tiny_flux2(seed: int = 0) -> Flux2Pipeline:
    """FLUX.2 dev, whose text encoder is a vision-language model that is shown words only."""
    torch.manual_seed(seed)
    tokenizer = tiny_qwen_tokenizer("m['content'][0]['text']")
    config = Mistral3Config(
        text_config={
            "model_type": "mistral",
            "vocab_size": len(tokenizer),
            "hidden_size": WIDTH,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
        },
        vision_config={
            "model_type": "pixtral",
            "hidden_size": WIDTH,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "image_size": 28,
            "patch_size": 14,
        },
    )
    return Flux2Pipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_flux2_vae(),
        text_encoder=Mistral3ForConditionalGeneration(config).eval(),
        tokenizer=tokenizer,
        transformer=_flux2(guided=True),
    )


def _flux2(guided: bool) -> Flux2Transformer2DModel:
    return Flux2Transformer2DModel(
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        timestep_guidance_channels=32,
        axes_dims_rope=(4, 4, 4, 4),
        guidance_embeds=guided,
    ).eval()


def _flux2_vae() -> AutoencoderKLFlux2:
    return AutoencoderKLFlux2(
        latent_channels=4,
        block_out_channels=(8, 8, 16, 16),
        norm_num_groups=8,
        sample_size=64,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
    ).eval()
