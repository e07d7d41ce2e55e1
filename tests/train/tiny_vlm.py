"""A vision-language model of SmolVLM's class (Idefics3) with random weights, small enough to train in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3Processor,
    PreTrainedTokenizerFast,
)
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

NAMES = {
    "fake_image_token": "<fake_token_around_image>",
    "image_token": "<image>",
    "end_of_utterance_token": "<end_of_utterance>",
    "global_image_token": "<global-img>",
}
TEMPLATE = (  # as SmolVLM's own
    "<|im_start|>{% for m in messages %}{{ m['role'] | capitalize }}:{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)


def save_tiny_vlm(folder: Path, texts: Iterable[str] = (), side: int = 32) -> Path:
    """Saves model and processor; `texts` teach its tokenizer words, so that prompts are short."""
    tokenizer = _tokenizer(texts)
    seeing = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    reading = {
        "model_type": "llama",
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    torch.manual_seed(0)
    model = Idefics3ForConditionalGeneration(
        Idefics3Config(
            text_config=reading,
            vision_config={**seeing, "image_size": side, "patch_size": 8},
            image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
            scale_factor=side // 8,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    edge = {"longest_edge": side}
    pictures = Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    model.save_pretrained(folder)
    Idefics3Processor(pictures, tokenizer, image_seq_len=1, chat_template=TEMPLATE).save_pretrained(folder)
    return folder


def _tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", *NAMES.values()]
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|im_start|>",
        eos_token="<end_of_utterance>",
        pad_token="<|im_start|>",
        extra_special_tokens=NAMES,
    )
