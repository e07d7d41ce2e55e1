"""Tiny diffusion pipelines with random weights, of the same classes as the real ones, built in code.

They run every line that the real weights would run, and say nothing about how well any model edits.
Latents are an eighth of the image, as in the real ones. Everything is seeded: the same call, the same weights.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from diffusers import (
    AutoencoderKL,
    AutoencoderKLFlux2,
    AutoencoderKLQwenImage,
    DDIMScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    Flux2KleinPipeline,
    Flux2Transformer2DModel,
    FluxFillPipeline,
    FluxKontextPipeline,
    FluxTransformer2DModel,
    QwenImageTransformer2DModel,
    StableDiffusionInstructPix2PixPipeline,
    StableDiffusionPipeline,
    StableDiffusionXLInstructPix2PixPipeline,
    UNet2DConditionModel,
)
from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    CLIPConfig,
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    CLIPVisionConfig,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Tokenizer,
    Qwen3Config,
    Qwen3ForCausalLM,
    T5Config,
    T5EncoderModel,
    T5Tokenizer,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

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


def tiny_stable_diffusion(seed: int = 0, levels: int = 2) -> StableDiffusionPipeline:
    """Stable Diffusion, the base of Imagic and, with three levels, of LEDITS++."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    return StableDiffusionPipeline(
        vae=tiny_vae(),
        text_encoder=tiny_text_encoder(tokenizer),
        tokenizer=tokenizer,
        unet=tiny_unet(4, levels),
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
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    first = tiny_text_encoder(tokenizer)
    second = CLIPTextModelWithProjection(first.config).eval()
    unet = UNet2DConditionModel(
        in_channels=8,
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
    return StableDiffusionXLInstructPix2PixPipeline(
        vae=tiny_vae(),
        text_encoder=first,
        text_encoder_2=second,
        tokenizer=tokenizer,
        tokenizer_2=tokenizer,
        unet=unet.eval(),
        scheduler=EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear"),
        add_watermarker=False,
    )


def tiny_t5() -> tuple[T5EncoderModel, T5Tokenizer]:
    """A T5 encoder of one layer, whose tokens are the printable characters."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(chr(code), -3.0) for code in range(33, 127)]
    tokenizer = T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=512)
    config = T5Config(
        vocab_size=len(pieces),
        d_model=WIDTH,
        d_kv=8,
        d_ff=64,
        num_layers=1,
        num_heads=4,
        decoder_start_token_id=0,
    )
    return T5EncoderModel(config).eval(), tokenizer


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
        vae=_shifted_vae(),
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
        vae=_shifted_vae(),
        text_encoder=tiny_text_encoder(tokenizer),
        tokenizer=tokenizer,
        text_encoder_2=encoder,
        tokenizer_2=pieces,
        transformer=_flux(16, 16),
    )


def _shifted_vae() -> AutoencoderKL:
    vae = tiny_vae()
    vae.register_to_config(shift_factor=0.1, scaling_factor=0.36)
    return vae


def tiny_qwen_tokenizer() -> Qwen2Tokenizer:
    """Bytes, the special tokens of Qwen, and a chat template of one line."""
    letters = sorted(ByteLevel.alphabet())
    special = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "<|vision_start|>",
        "<|vision_end|>",
        "<|image_pad|>",
        "<|video_pad|>",
    ]
    tokenizer = Qwen2Tokenizer(
        vocab={letter: number for number, letter in enumerate(letters)},
        merges=[],
        additional_special_tokens=special[1:],
        pad_token=special[0],
        eos_token=special[0],
        unk_token=special[0],
    )
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }} {{ m['content'] }}<|im_end|>{% endfor %}"
    )
    return tokenizer


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
    transformer = Flux2Transformer2DModel(
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        timestep_guidance_channels=32,
        axes_dims_rope=(4, 4, 4, 4),
        guidance_embeds=False,
    )
    vae = AutoencoderKLFlux2(
        latent_channels=4,
        block_out_channels=(8, 8, 16, 16),
        norm_num_groups=8,
        sample_size=64,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
    )
    return Flux2KleinPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=vae.eval(),
        text_encoder=encoder.eval(),
        tokenizer=tokenizer,
        transformer=transformer.eval(),
        is_distilled=True,
    )


def save_tiny_qwen_image_edit(folder: Path, *, plus: bool, seed: int = 0) -> None:
    """Saves Qwen-Image-Edit part by part: its processor cannot be built where torchvision is absent."""
    torch.manual_seed(seed)
    tokenizer = tiny_qwen_tokenizer()
    ids = {name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in ("image_pad", "video_pad")}
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": WIDTH,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e6},
        },
        vision_config={
            "depth": 1,
            "hidden_size": WIDTH,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": WIDTH,
            "fullatt_block_indexes": [0],
        },
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        vision_end_token_id=tokenizer.convert_tokens_to_ids("<|vision_end|>"),
    )
    parts = {
        "text_encoder": Qwen2_5_VLForConditionalGeneration(config),
        "tokenizer": tokenizer,
        "processor": Qwen2VLImageProcessorPil(),
        "scheduler": FlowMatchEulerDiscreteScheduler(),
        "transformer": QwenImageTransformer2DModel(
            patch_size=2,
            in_channels=16,
            out_channels=4,
            num_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=WIDTH,
            axes_dims_rope=(4, 6, 6),
        ),
        "vae": AutoencoderKLQwenImage(
            base_dim=8,
            z_dim=4,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, True, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        ),
    }
    index: dict[str, object] = {
        "_class_name": "QwenImageEditPlusPipeline" if plus else "QwenImageEditPipeline",
        "_diffusers_version": "0.42.0",
    }
    for name, part in parts.items():
        part.save_pretrained(folder / name)
        library = "transformers" if name in ("text_encoder", "tokenizer", "processor") else "diffusers"
        index[name] = [library, type(part).__name__]
    index["processor"] = ["transformers", "Qwen2VLProcessor"]
    (folder / "model_index.json").write_text(json.dumps(index), encoding="utf-8")
