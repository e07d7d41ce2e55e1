"""Watching an editor at work: the same edit as ever, with a map of where it looked for the words of a concept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
import torch

from plantain.models.diffusers.attention.cross import CrossAttentionRecorder
from plantain.models.diffusers.attention.joint import JointAttentionRecorder
from plantain.models.diffusers.attention.phrases import concept_tokens, joint_tokens
from plantain.models.diffusers.attention.watching import BLOCKS, LEVELS, MOST_TOKENS, Watching
from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines.runner import Runner, runner_for
from plantain.models.diffusers.plan import EditorPlan
from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, Outcome

CROSS_ATTENDING = frozenset({"instruct-pix2pix", "instruct-diffusion", "sdxl-instruct-pix2pix"})
"""Methods whose UNet reads the instruction by cross-attention."""

JOINT_ATTENDING = frozenset({"flux-kontext", "flux2-klein", "qwen-image-edit", "qwen-image-edit-plus"})
"""Methods whose transformer joins words, output and one reference of the output's size in one sequence."""

USUAL_GUIDANCE = 7.5
USUAL_IMAGE_GUIDANCE = 1.5
"""The pipelines' own defaults (diffusers 0.42)."""


@dataclass(frozen=True, slots=True)
class AttentionLook:
    """An editor's attention, or the reason why it was not recorded.

    Attributes:
        attention: float32 (h, w), at latent size, on the model's canvas; None with a `reason`.
        frame: position of the image on that canvas.
        tokens: positions of the concept in the prompt.
        edited: uint8 (H, W, 3), the edit at the image's own size; None if there is none.
        layers: recorded.
        what: was recorded, in words.
    """

    attention: npt.NDArray[np.float32] | None
    frame: Frame
    tokens: tuple[int, ...]
    edited: Pixels | None
    layers: int
    what: str
    reason: str = ""

    def on_image(self) -> npt.NDArray[np.float32]:
        """Return the map at the image's size, float32 (H, W), bilinear. Raise ValueError without a map."""
        if self.attention is None:
            raise ValueError(self.reason)
        frame = self.frame
        canvas = cv2.resize(self.attention, frame.canvas, interpolation=cv2.INTER_LINEAR)
        inner = canvas[
            frame.top : frame.top + frame.inner_height, frame.left : frame.left + frame.inner_width
        ]
        size = (frame.width, frame.height)
        return np.asarray(cv2.resize(inner, size, interpolation=cv2.INTER_LINEAR), np.float32)


class Attender:
    """An editor in this process whose attention is recorded.

    Args:
        plan: of the editor.
        device: of torch.
        watching: settings of the record.

    Raises:
        InputError: the method cannot be looked into, or not in this way.
    """

    def __init__(self, plan: EditorPlan, device: str, watching: Watching) -> None:
        watching.check()
        check_fits(plan, watching)
        self.plan, self.watching = plan, watching
        self._runner: Runner = runner_for(plan.loading, device)

    def look(
        self, pixels: Pixels, instruction: str, seed: int, concept: str, parameters: dict[str, float]
    ) -> AttentionLook:
        """Edit an image as `DiffusersEditor` does and return the model's attention to `concept`.

        Args:
            pixels: uint8 (H, W, 3), the original.
            instruction: without the preset's words, which are added.
            seed: of the edit.
            concept: words of the instruction.
            parameters: settings of this edit.
        """
        plan = self.plan
        height, width = pixels.shape[:2]
        frame = plan.method.frame.frame(width, height, plan.options.side)
        words = plan.preset.words(instruction)
        joint = plan.method.name in JOINT_ATTENDING
        what = f"joint attention, text to {self.watching.block}" if joint else "cross-attention"
        tokens = self._tokens(words, concept)
        if why := _cannot_watch(concept, tokens, joint=joint):
            return AttentionLook(None, frame, (), None, 0, what, why)
        kept = tokens[-1:] if self.watching.tokens == "last" else tokens
        steering = Steering.of({**plan.steering.settings, **parameters})
        recorder = self._joint(frame, kept) if joint else self._cross(frame, steering)
        with recorder:
            job = Job(frame.enter(pixels), words, seed, side=plan.options.side)
            (drawn,) = self._runner.edit([job], steering)
        edited = None if isinstance(drawn, Outcome) else frame.leave(drawn)
        if not recorder.recorded:
            why = "no layer of the chosen parts, resolutions and steps ran"
            return AttentionLook(None, frame, tokens, edited, 0, what, why)
        maps = recorder.maps()[0]
        chosen = maps[BLOCKS.index(self.watching.block)] if joint else maps[list(kept)]
        steps = recorder.recorded // len(recorder.layers)
        what += f" ({len(recorder.layers)} layers, {steps} of {recorder.step + 1} steps)"
        attention = np.asarray(chosen.mean(0).cpu().numpy(), np.float32)
        return AttentionLook(attention, frame, tokens, edited, len(recorder.layers), what)

    def _tokens(self, words: str, concept: str) -> tuple[int, ...]:
        if self.plan.method.name in JOINT_ATTENDING:
            return joint_tokens(self.plan.method.name, self._runner.pipe, words, concept)
        return concept_tokens(self._runner.pipe.tokenizer, words, concept)

    def _joint(self, frame: Frame, tokens: Sequence[int]) -> JointAttentionRecorder:
        pipe, watching = self._runner.pipe, self.watching
        patch = 2 * int(pipe.vae_scale_factor)  # each token is two by two latents
        return JointAttentionRecorder(
            pipe.transformer,
            (frame.canvas_height // patch, frame.canvas_width // patch),
            tokens,
            total=lambda: len(pipe.scheduler.timesteps),
            layers=watching.layers,
            heads=watching.heads,
            steps=watching.steps,
        )

    def _cross(self, frame: Frame, steering: Steering) -> CrossAttentionRecorder:
        pipe, watching = self._runner.pipe, self.watching
        scale = int(pipe.vae_scale_factor)
        return CrossAttentionRecorder(
            pipe.unet,
            (frame.canvas_height // scale, frame.canvas_width // scale),
            chunks=self._chunks(steering),
            parts=watching.parts,
            resolutions=watching.resolutions,
            layers=watching.layers,
            heads=watching.heads,
            steps=watching.steps,
        )

    def _chunks(self, steering: Steering) -> int:
        """How many conditions one pass of the UNet holds: three under guidance, else one."""
        arguments = self._runner.arguments(steering)
        guidance = arguments.get("guidance_scale", USUAL_GUIDANCE)
        image_guidance = arguments.get("image_guidance_scale", USUAL_IMAGE_GUIDANCE)
        assert isinstance(guidance, int | float) and isinstance(image_guidance, int | float)
        return 3 if guidance > 1.0 and image_guidance >= 1.0 else 1

    def close(self) -> None:
        """Release the weights."""
        self._runner.close()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def check_fits(plan: EditorPlan, watching: Watching) -> None:
    """Raise InputError if the method's attention cannot be recorded, or an option does not apply to it."""
    name = plan.method.name
    if name in JOINT_ATTENDING:
        if watching.parts != LEVELS or watching.resolutions:
            raise InputError(
                f"{plan.name}: --set parts chooses layers of a UNet; this is a transformer: --set layers"
            )
    elif name in CROSS_ATTENDING:
        if watching.block != "output":
            raise InputError(
                f"{plan.name}: --set block {watching.block} is of joint attention; this has cross-attention"
            )
    else:
        able = ", ".join(sorted(CROSS_ATTENDING | JOINT_ATTENDING))
        raise InputError(f"{plan.name}: {name} cannot be looked into; these can: {able}")


def _cannot_watch(concept: str, tokens: Sequence[int], *, joint: bool) -> str:
    """Why there is nothing to watch for; "" where there is."""
    if not concept:
        return "no key concept is named"
    if not tokens:
        return f"the model does not see {concept!r} in its prompt"
    if joint and len(tokens) > MOST_TOKENS:
        return f"{concept!r} is {len(tokens)} tokens; at most {MOST_TOKENS} are recorded"
    return ""
