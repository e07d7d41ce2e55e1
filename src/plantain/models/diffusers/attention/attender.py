"""Edit an image with an open editor, and record its attention to the words of a concept; the edit is unchanged.

The tokens of the concept are found in the text that the editor reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from diffusers import DiffusionPipeline

from plantain.models.diffusers.attention.cross import CrossAttentionRecorder
from plantain.models.diffusers.attention.joint import JointAttentionRecorder
from plantain.models.diffusers.attention.watching import AttentionLook
from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines.runner import Runner, runner_for
from plantain.models.diffusers.plan import EditorPlan
from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, Outcome

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
    """Return the positions of a concept's tokens in a prompt, the start token being 0; () if it is absent.

    The last mention before the prompt is cut counts; only whole words match ("ear" is not in "tear"), in any case.

    Args:
        tokenizer: the editor's tokenizer.
        prompt: the whole text passed to the editor.
        concept: the words to find.
    """
    offsets = tokenizer(
        prompt, return_offsets_mapping=True, truncation=True, max_length=tokenizer.model_max_length
    )["offset_mapping"]
    return mention_tokens(offsets, prompt, concept)


def mention_tokens(
    offsets: Sequence[tuple[int, int]], prompt: str, concept: str, *, start: int = 0
) -> tuple[int, ...]:
    """Return the positions in `offsets` of the last whole mention of a concept; () if there is none.

    Args:
        offsets: (start, end) of each token in the tokenized text, in characters.
        prompt: the part of that text in which mentions count.
        concept: the words to find.
        start: offset of that part in the text, in characters.
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
    """Return the positions of a concept among a joint-attention editor's text tokens; () if it is absent.

    Args:
        method: name of the `EditingMethod`.
        pipe: the editor.
        prompt: the instruction as passed to the editor.
        concept: the words to find.

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


CROSS_ATTENDING = frozenset({"instruct-pix2pix", "instruct-diffusion", "sdxl-instruct-pix2pix"})
"""Methods whose UNet reads the instruction by cross-attention."""

JOINT_ATTENDING = frozenset({"flux-kontext", "flux2-klein", "qwen-image-edit", "qwen-image-edit-plus"})
"""Methods whose transformer joins words, output and one reference of the output's size in one sequence."""

USUAL_GUIDANCE = 7.5
USUAL_IMAGE_GUIDANCE = 1.5
"""The pipelines' own defaults (diffusers 0.42)."""


class Attender:
    """An editor in this process whose attention is recorded.

    Args:
        plan: plan of the editor.
        device: name of the torch device.

    Raises:
        InputError: the method's attention cannot be recorded.
    """

    def __init__(self, plan: EditorPlan, device: str) -> None:
        check_fits(plan)
        self.plan = plan
        self._runner: Runner = runner_for(plan.loading, device)

    def look(
        self, pixels: Pixels, instruction: str, seed: int, concept: str, parameters: dict[str, float]
    ) -> AttentionLook:
        """Edit an image as `DiffusersEditor` does and return the model's attention to `concept`.

        Args:
            pixels: uint8 (H, W, 3), the original.
            instruction: the instruction without the preset's prompt, which is added.
            seed: seed of the edit.
            concept: words of the instruction whose attention is recorded.
            parameters: settings of this edit.
        """
        plan = self.plan
        height, width = pixels.shape[:2]
        frame = plan.method.frame.frame(width, height, plan.options.side)
        words = plan.preset.words(instruction)
        joint = plan.method.name in JOINT_ATTENDING
        what = "joint attention, text to output" if joint else "cross-attention"
        tokens = self._tokens(words, concept)
        if not tokens:
            return AttentionLook(
                None, frame, (), None, what, f"the model does not see {concept!r} in its prompt"
            )
        kept = tokens[-1:]  # of a concept, as in MedEBench, 4
        steering = Steering.of({**plan.steering.settings, **parameters})
        recorder = self._joint(frame, kept) if joint else self._cross(frame, steering)
        with recorder:
            job = Job(frame.enter(pixels), words, seed, side=plan.options.side)
            (drawn,) = self._runner.edit([job], steering)
        edited = None if isinstance(drawn, Outcome) else frame.leave(drawn)
        maps = recorder.maps()[0]
        chosen = maps if joint else maps[list(kept)]
        steps = recorder.recorded // len(recorder.layers)
        what += f" ({len(recorder.layers)} layers, {steps} of {recorder.step + 1} steps)"
        attention = np.asarray(chosen.mean(0).cpu().numpy(), np.float32)
        return AttentionLook(attention, frame, tokens, edited, what)

    def _tokens(self, words: str, concept: str) -> tuple[int, ...]:
        if self.plan.method.name in JOINT_ATTENDING:
            return joint_tokens(self.plan.method.name, self._runner.pipe, words, concept)
        return concept_tokens(self._runner.pipe.tokenizer, words, concept)

    def _joint(self, frame: Frame, tokens: Sequence[int]) -> JointAttentionRecorder:
        pipe = self._runner.pipe
        patch = 2 * int(pipe.vae_scale_factor)  # each token is two by two latents
        return JointAttentionRecorder(
            pipe.transformer,
            (frame.canvas_height // patch, frame.canvas_width // patch),
            tokens,
            total=lambda: len(pipe.scheduler.timesteps),
        )

    def _cross(self, frame: Frame, steering: Steering) -> CrossAttentionRecorder:
        pipe = self._runner.pipe
        scale = int(pipe.vae_scale_factor)
        return CrossAttentionRecorder(
            pipe.unet,
            (frame.canvas_height // scale, frame.canvas_width // scale),
            chunks=self._chunks(steering),
        )

    def _chunks(self, steering: Steering) -> int:
        """How many conditions one pass of the UNet holds: three under guidance, else one."""
        arguments = self._runner.arguments(steering)
        guidance = arguments.get("guidance_scale", USUAL_GUIDANCE)
        image_guidance = arguments.get("image_guidance_scale", USUAL_IMAGE_GUIDANCE)
        assert isinstance(guidance, int | float) and isinstance(image_guidance, int | float)
        return 3 if guidance > 1.0 and image_guidance >= 1.0 else 1

    def close(self) -> None:
        """Release the weights and the GPU memory that they used."""
        self._runner.close()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def check_fits(plan: EditorPlan) -> None:
    """Raise InputError if the method's attention cannot be recorded."""
    able = CROSS_ATTENDING | JOINT_ATTENDING
    if (name := plan.method.name) not in able:
        raise InputError(f"{plan.name}: {name} cannot be looked into; these can: {', '.join(sorted(able))}")
