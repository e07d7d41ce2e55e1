"""Tiny diffusion pipelines with random weights, of the same classes as the real ones, built in code.

They run every line that the real weights would run, and say nothing about how well any model edits.
Latents are an eighth of the image, as in the real ones. Everything is seeded: the same call, the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from diffusers import (
    AutoencoderKL,
    EulerAncestralDiscreteScheduler,
    StableDiffusionInstructPix2PixPipeline,
    UNet2DConditionModel,
)
from tokenizers.pre_tokenizers import ByteLevel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

torch.set_num_threads(1)

WIDTH = 32
"""Width of every text encoder here, and of the attention to it."""


def tiny_tokenizer(words: Sequence[str] = ()) -> CLIPTokenizer:
    """A CLIP tokenizer of the 256 bytes; each of `words` (lower case, two letters or more) is one token."""
    letters = sorted(ByteLevel.alphabet())
    tokens = [*letters, *(letter + "</w>" for letter in letters)]
    merges: list[tuple[str, str]] = []
    for word in words:  # a chain of merges makes the whole word one token
        left = word[0]
        for right in [*word[1:-1], word[-1] + "</w>"]:
            if (left, right) not in merges:
                merges.append((left, right))
            left += right
            if left not in tokens:
                tokens.append(left)
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return CLIPTokenizer(vocab=vocabulary, merges=merges, model_max_length=77)


def tiny_text_encoder(tokenizer: CLIPTokenizer) -> CLIPTextModel:
    """Two layers of width `WIDTH`."""
    config = CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=64,
        projection_dim=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=77,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return CLIPTextModel(config).eval()


def tiny_vae(latent_channels: int = 4) -> AutoencoderKL:
    """Four levels, so that latents are an eighth of the image; 67 thousand weights."""
    return AutoencoderKL(
        latent_channels=latent_channels,
        block_out_channels=(8, 8, 16, 16),
        norm_num_groups=8,
        sample_size=64,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
    ).eval()


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
