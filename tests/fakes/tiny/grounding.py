"""Tiny GroundingDINO and SAM of random weights, of the same classes as the published ones, saved as folders."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import (
    BertTokenizer,
    GroundingDinoConfig,
    GroundingDinoForObjectDetection,
    GroundingDinoImageProcessor,
    GroundingDinoProcessor,
    SamConfig,
    SamImageProcessor,
    SamMaskDecoderConfig,
    SamModel,
    SamProcessor,
    SamPromptEncoderConfig,
    SamVisionConfig,
    SwinConfig,
)

WORDS = ("remove", "a", "the", "mole", "stain")


def save_tiny_detector(folder: Path) -> None:
    """Write a GroundingDINO of 20 queries that knows `WORDS`."""
    torch.manual_seed(0)
    tokens = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", *WORDS)
    backbone = SwinConfig(
        image_size=64,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 2, 2],
        window_size=2,
        out_indices=[2, 3, 4],
    )
    text = {"model_type": "bert", "vocab_size": len(tokens), "hidden_size": 16, "intermediate_size": 32}
    config = GroundingDinoConfig(
        backbone_config=backbone,
        text_config=text | {"num_hidden_layers": 1, "num_attention_heads": 2},
        d_model=32,
        num_queries=20,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        disable_custom_kernels=True,
        max_text_len=16,
    )
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
    tokenizer = BertTokenizer(vocab={token: number for number, token in enumerate(tokens)})
    images = GroundingDinoImageProcessor(size={"shortest_edge": 64, "longest_edge": 96})
    GroundingDinoProcessor(images, tokenizer).save_pretrained(folder)


def save_tiny_segmenter(folder: Path) -> None:
    """Write a SAM of one layer on images of 64 pixels."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_dim": 32}
    vision = SamVisionConfig(
        **sizes,
        output_channels=16,
        image_size=64,
        patch_size=16,
        window_size=2,
        num_pos_feats=8,
        global_attn_indexes=[0],
    )
    prompts = SamPromptEncoderConfig(hidden_size=16, image_size=64, patch_size=16, mask_input_channels=4)
    masks = SamMaskDecoderConfig(**sizes, iou_head_hidden_dim=16)
    config = SamConfig(vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=masks)
    SamModel(config).save_pretrained(folder)
    images = SamImageProcessor(
        size={"longest_edge": 64},
        mask_size={"longest_edge": 16},
        pad_size={"height": 64, "width": 64},
        mask_pad_size={"height": 16, "width": 16},
    )
    SamProcessor(images).save_pretrained(folder)
