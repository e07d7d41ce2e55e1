"""Tiny Qwen-Image-Edit, which reads with a vision-language model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from diffusers import AutoencoderKLQwenImage, FlowMatchEulerDiscreteScheduler, QwenImageTransformer2DModel
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from fakes.tiny.parts import WIDTH, tiny_qwen_tokenizer


def save_tiny_qwen_image_edit(folder: Path, *, plus: bool, seed: int = 0) -> None:
    """Saves Qwen-Image-Edit."""
    torch.manual_seed(seed)
    parts: dict[str, Any] = {
        **_reading_parts(),
        "transformer": QwenImageTransformer2DModel(
            patch_size=2,
            in_channels=16,
            out_channels=4,
            num_layers=2,
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
    _save(folder, "QwenImageEditPlusPipeline" if plus else "QwenImageEditPipeline", parts)


def _reading_parts() -> dict[str, Any]:
    """The text encoder with its tokenizer and processor, and a scheduler."""
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
    return {
        "text_encoder": Qwen2_5_VLForConditionalGeneration(config),
        "tokenizer": tokenizer,
        "processor": Qwen2VLImageProcessorPil(),
        "scheduler": FlowMatchEulerDiscreteScheduler(),
    }


def _save(folder: Path, class_name: str, parts: dict[str, Any]) -> None:
    """Part by part: the processor of the pipeline cannot be built where torchvision is absent."""
    index: dict[str, object] = {"_class_name": class_name, "_diffusers_version": "0.42.0"}
    for name, part in parts.items():
        part.save_pretrained(folder / name)
        library = "transformers" if type(part).__module__.startswith("transformers") else "diffusers"
        processor = isinstance(part, Qwen2VLImageProcessorPil)
        index[name] = [library, "Qwen2VLProcessor" if processor else type(part).__name__]
    (folder / "model_index.json").write_text(json.dumps(index), encoding="utf-8")
