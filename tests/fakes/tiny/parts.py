"""Parts of tiny pipelines: tokenizers of bytes, text encoders of a layer or two, and a small VAE."""

from __future__ import annotations

from collections.abc import Sequence

from diffusers import AutoencoderKL
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTokenizer,
    Qwen2Tokenizer,
    T5Config,
    T5EncoderModel,
    T5Tokenizer,
)

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


def shifted_vae(latent_channels: int = 4) -> AutoencoderKL:
    """One whose latents are shifted before they are scaled, as FLUX.1 has it."""
    vae = tiny_vae(latent_channels)
    vae.register_to_config(shift_factor=0.1, scaling_factor=0.36)
    return vae


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


def tiny_qwen_tokenizer(content: str = "m['content']") -> Qwen2Tokenizer:
    """Bytes, the special tokens of Qwen, and a chat template of one line; `content` is where a message has its text."""
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
        "{% for m in messages %}<|im_start|>{{ m['role'] }} {{ " + content + " }}<|im_end|>{% endfor %}"
    )
    return tokenizer
