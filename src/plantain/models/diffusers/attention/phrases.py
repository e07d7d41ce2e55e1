"""Find the tokens of a concept in the text that an editor reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from diffusers import DiffusionPipeline

IMAGE_TOKENS = {
    "qwen-image-edit": "",
    "qwen-image-edit-plus": "Picture 1: <|vision_start|><|image_pad|><|vision_end|>",
}
"""Text that these pipelines put before the instruction, inside their template (diffusers 0.42)."""

LONGEST = 512
"""Tokens of a prompt that Kontext and klein read (their pipelines' `max_sequence_length`)."""


class OffsetTokenizer(Protocol):
    """A tokenizer that returns the characters that each token covers."""

    model_max_length: int

    def __call__(
        self, text: str, *, return_offsets_mapping: bool, truncation: bool, max_length: int
    ) -> dict[str, list[tuple[int, int]]]: ...


def concept_tokens(tokenizer: OffsetTokenizer, prompt: str, concept: str) -> tuple[int, ...]:
    """Return the positions of a concept's tokens in a prompt, counting the begin token; () if it is absent.

    Whole words only ("ear" is not in "tear"), letter case ignored, the last mention that the model still sees.

    Args:
        tokenizer: the editor's own.
        prompt: the whole text passed to the editor.
        concept: the words looked for.
    """
    offsets = tokenizer(
        prompt, return_offsets_mapping=True, truncation=True, max_length=tokenizer.model_max_length
    )["offset_mapping"]
    return mention_tokens(offsets, prompt, concept)


def mention_tokens(
    offsets: Sequence[tuple[int, int]], prompt: str, concept: str, *, start: int = 0
) -> tuple[int, ...]:
    """Return the tokens of the last whole mention of a concept.

    Args:
        offsets: (first letter, letter after the last) of each token, in the text that was tokenized.
        prompt: the part of that text in which mentions count.
        concept: the words looked for.
        start: offset of that part in the text.
    """
    words = concept.strip()
    if not words:
        return ()
    mentions = list(re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", prompt, re.IGNORECASE))
    for mention in reversed(mentions):
        first, end = start + mention.start(), start + mention.end()
        hits = [i for i, (a, b) in enumerate(offsets) if a < b and a < end and b > first]
        if hits and offsets[hits[-1]][1] >= end:
            return tuple(hits)
    return ()


def joint_tokens(method: str, pipe: DiffusionPipeline, prompt: str, concept: str) -> tuple[int, ...]:
    """Return the tokens of a concept among a joint-attention editor's text tokens; () if it is absent.

    Args:
        method: name of the way in which the pipeline edits.
        pipe: the editor.
        prompt: the instruction as passed to the editor.
        concept: the words looked for.

    Returns:
        Positions; negative ones count from the end, as for Qwen-Image-Edit, which puts the image's tokens first.

    Raises:
        ValueError: a method whose text tokens are not known.
    """
    if method == "flux-kontext":
        tokenizer, text = pipe.tokenizer_2, prompt
    elif method == "flux2-klein":
        tokenizer = pipe.tokenizer
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=False,
        )
    elif method in IMAGE_TOKENS:
        return _from_the_end(method, pipe, prompt, concept)
    else:
        raise ValueError(f"{method}: the position of its words is unknown")
    offsets = _offsets(tokenizer, text, padding="max_length", truncation=True, max_length=LONGEST)
    return mention_tokens(offsets, prompt, concept, start=text.rindex(prompt))


def _from_the_end(method: str, pipe: DiffusionPipeline, prompt: str, concept: str) -> tuple[int, ...]:
    text = pipe.prompt_template_encode.format(IMAGE_TOKENS[method] + prompt)
    offsets = _offsets(pipe.tokenizer, text)
    found = mention_tokens(offsets, prompt, concept, start=text.rindex(prompt))
    return tuple(position - len(offsets) for position in found)


def _offsets(tokenizer: Any, text: str, **how: object) -> list[tuple[int, int]]:
    offsets: list[tuple[int, int]] = tokenizer(text, return_offsets_mapping=True, **how)["offset_mapping"]
    return offsets
