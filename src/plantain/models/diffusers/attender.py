"""Watching an editor at work: the same edit as ever, with a map of where it looked for the words of a concept."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
import torch

from plantain.models.diffusers.attention import LEVELS, CrossAttentionRecorder, concept_tokens
from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines import instruct_pix2pix
from plantain.models.diffusers.pipelines.runner import Runner, runner_for
from plantain.models.diffusers.plan import EditorPlan
from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels
from plantain.records import InputError

CROSS_ATTENDING = frozenset({"instruct-pix2pix", "instruct-diffusion", "sdxl-instruct-pix2pix"})
"""Methods whose UNet reads the instruction by cross-attention. Transformers of joint attention have none to record."""

TOKENS = ("last", "mean")
"""Which of a concept's tokens: the last one (MedEBench, 4.3), or the mean of all."""

USUAL_GUIDANCE = 7.5
USUAL_IMAGE_GUIDANCE = 1.5
"""The pipelines' own defaults (diffusers 0.42)."""


@dataclass(frozen=True, slots=True)
class Watching:
    """What is recorded, where the paper leaves it open.

    Attributes:
        parts: of the UNet, from down, mid, up; all layers of a part count alike, heads are averaged.
        resolutions: heights of attention maps, in latent pixels; () for all.
        tokens: one of `TOKENS`.
    """

    parts: tuple[str, ...] = LEVELS
    resolutions: tuple[int, ...] = ()
    tokens: str = "last"

    def check(self) -> None:
        """Refuses what cannot be recorded. Raises InputError naming the option."""
        if not self.parts or set(self.parts) - set(LEVELS):
            raise InputError(f"--parts: choose some of {', '.join(LEVELS)}")
        if self.tokens not in TOKENS:
            raise InputError(f"--tokens {self.tokens}: choose one of {', '.join(TOKENS)}")


@dataclass(frozen=True, slots=True)
class AttentionLook:
    """Where an editor looked, or why nobody knows.

    Attributes:
        attention: float32 (h, w), at latent size, on the model's canvas; None with a `reason`.
        frame: where the image lies on that canvas.
        tokens: positions of the concept in the prompt.
        edited: uint8 (H, W, 3), what the editor drew, at the image's own size; None when it drew nothing.
        layers: recorded.
    """

    attention: npt.NDArray[np.float32] | None
    frame: Frame
    tokens: tuple[int, ...]
    edited: Pixels | None
    layers: int
    reason: str = ""

    def on_image(self) -> npt.NDArray[np.float32]:
        """The map at the image's own size, float32 (H, W), bilinear; raises ValueError when there is none."""
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
        watching: what is recorded.

    Raises:
        InputError: the method has no cross-attention to record.
    """

    def __init__(self, plan: EditorPlan, device: str, watching: Watching) -> None:
        watching.check()
        if plan.method.name not in CROSS_ATTENDING:
            raise InputError(
                f"{plan.name}: {plan.method.name} has no cross-attention to record; it can be of "
                f"{', '.join(sorted(CROSS_ATTENDING))}"
            )
        self.plan, self.watching = plan, watching
        self._runner: Runner = runner_for(plan.loading, device)

    @property
    def tells_sides(self) -> bool:
        """Whether the editor was told where the patient's sides lie in the picture."""
        return self.plan.tells_sides

    def look(
        self, pixels: Pixels, instruction: str, seed: int, concept: str, parameters: dict[str, float]
    ) -> AttentionLook:
        """Edits an image as `DiffusersEditor` does and says where the model looked for `concept`.

        Args:
            pixels: uint8 (H, W, 3), the original.
            instruction: as the editor is handed it; the preset's words are put around it.
            seed: of the edit.
            concept: words of the instruction.
            parameters: settings of this edit.
        """
        plan, pipe = self.plan, self._runner.pipe
        height, width = pixels.shape[:2]
        frame = plan.method.frame.frame(width, height, plan.options.side)
        words = plan.preset.words(instruction)
        tokens = concept_tokens(pipe.tokenizer, words, concept)
        if not tokens:
            why = (
                "no key concept is named"
                if not concept
                else f"the model does not see {concept!r} in its prompt"
            )
            return AttentionLook(None, frame, (), None, 0, why)
        steering = Steering.of({**plan.steering.settings, **parameters})
        scale = int(pipe.vae_scale_factor)
        latent = frame.canvas_height // scale, frame.canvas_width // scale
        with CrossAttentionRecorder(
            pipe.unet,
            latent,
            chunks=self._chunks(steering),
            parts=self.watching.parts,
            resolutions=self.watching.resolutions,
        ) as recorder:
            (drawn,) = self._runner.edit([frame.enter(pixels)], [Job(b"", words, seed)], steering)
        edited = frame.leave(drawn.pixels) if drawn.pixels is not None else None
        if not recorder.recorded:
            return AttentionLook(
                None, frame, tokens, edited, 0, "no layer of the chosen parts and resolutions ran"
            )
        chosen = tokens[-1:] if self.watching.tokens == "last" else tokens
        attention = recorder.maps()[0, list(chosen)].mean(0).cpu().numpy()
        return AttentionLook(np.asarray(attention, np.float32), frame, tokens, edited, len(recorder.layers))

    def _chunks(self, steering: Steering) -> int:
        """How many conditions one pass of the UNet holds: three under guidance, else one."""
        if isinstance(self._runner, instruct_pix2pix.InstructPix2PixRunner):
            said = self._runner.guidance(steering)
            steering = Steering.of(
                {
                    name: value
                    for name, key in (
                        ("guidance", "guidance_scale"),
                        ("image_guidance", "image_guidance_scale"),
                    )
                    if isinstance(value := said.get(key), int | float)
                }
            )
        guidance = USUAL_GUIDANCE if steering.guidance is None else steering.guidance
        image_guidance = USUAL_IMAGE_GUIDANCE if steering.image_guidance is None else steering.image_guidance
        return 3 if guidance > 1.0 and image_guidance >= 1.0 else 1

    def close(self) -> None:
        """Gives the weights up."""
        self._runner.close()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
