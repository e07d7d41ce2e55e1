"""Edit an image with an open editor, and record its attention to the words of a concept; the edit is unchanged.

The tokens of the concept are found in the text that the editor reads.
"""

from __future__ import annotations

import asyncio
import re
from typing import Protocol

import numpy as np
import torch

from plantain.models.diffusers.attention.cross import CrossAttentionRecorder
from plantain.models.diffusers.attention.watched import AttentionLook
from plantain.models.diffusers.devices import device_names
from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines.runner import Runner, runner_for
from plantain.models.diffusers.plan import EditorPlan
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, Outcome


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
    words = concept.strip()
    if not words:
        return ()
    offsets = tokenizer(
        prompt, return_offsets_mapping=True, truncation=True, max_length=tokenizer.model_max_length
    )["offset_mapping"]
    mentions = list(re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", prompt, re.IGNORECASE))
    for mention in reversed(mentions):
        first, end = mention.span()
        hits = [i for i, (a, b) in enumerate(offsets) if a < b and a < end and b > first]
        if hits and offsets[hits[-1]][1] >= end:
            return tuple(hits)
    return ()


CROSS_ATTENDING = frozenset({"instruct-pix2pix", "instruct-diffusion", "sdxl-instruct-pix2pix"})
"""Methods whose UNet reads the instruction by cross-attention."""

USUAL_GUIDANCE = 7.5
USUAL_IMAGE_GUIDANCE = 1.5
"""The pipelines' own defaults (diffusers 0.42)."""


class Attender:
    """An editor in this process whose edits are repeated to record attention; its weights are loaded at the first.

    Raises:
        InputError: the method's attention cannot be recorded.
    """

    def __init__(self, plan: EditorPlan) -> None:
        if (name := plan.method.name) not in CROSS_ATTENDING:
            raise InputError(
                f"{plan.name}: {name} cannot be looked into; these can: {', '.join(sorted(CROSS_ATTENDING))}"
            )
        self.plan = plan
        self.names_sides = plan.names_sides
        self._runner: Runner | None = None

    async def look(
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
        return await asyncio.to_thread(self._look, pixels, instruction, seed, concept, parameters)

    def _look(
        self, pixels: Pixels, instruction: str, seed: int, concept: str, parameters: dict[str, float]
    ) -> AttentionLook:
        plan = self.plan
        if self._runner is None:
            self._runner = runner_for(plan.loading, device_names(plan.options.device)[0])
        runner, pipe = self._runner, self._runner.pipe
        height, width = pixels.shape[:2]
        frame = plan.method.frame.frame(width, height, plan.options.side)
        words = plan.preset.words(instruction)
        tokens = concept_tokens(pipe.tokenizer, words, concept)
        if not tokens:
            reason = f"the model does not see {concept!r} in its prompt"
            return AttentionLook(None, frame, (), None, "cross-attention", reason)
        steering = Steering.of({**plan.steering.settings, **parameters})
        scale = int(pipe.vae_scale_factor)
        latent = frame.canvas_height // scale, frame.canvas_width // scale
        with CrossAttentionRecorder(pipe.unet, latent, chunks=_chunks(runner, steering)) as recorder:
            job = Job(plan.loading, steering, frame.enter(pixels), words, seed, side=plan.options.side)
            drawn = runner.edit(job)
        edited = None if isinstance(drawn, Outcome) else frame.leave(drawn)
        chosen = recorder.maps()[0, tokens[-1]]  # of a concept the last token, as in MedEBench, 4
        layers = len(recorder.layers)
        what = f"cross-attention ({layers} layers, {recorder.recorded // layers} steps)"
        return AttentionLook(np.asarray(chosen.cpu().numpy(), np.float32), frame, tokens, edited, what)

    def close(self) -> None:
        """Release the weights and the GPU memory that they used."""
        if self._runner is not None:
            self._runner.close()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


def _chunks(runner: Runner, steering: Steering) -> int:
    """Return how many conditions one pass of the UNet has: three under guidance, else one."""
    arguments = runner.arguments(steering)
    guidance = arguments.get("guidance_scale", USUAL_GUIDANCE)
    image_guidance = arguments.get("image_guidance_scale", USUAL_IMAGE_GUIDANCE)
    assert isinstance(guidance, int | float) and isinstance(image_guidance, int | float)
    return 3 if guidance > 1.0 and image_guidance >= 1.0 else 1
