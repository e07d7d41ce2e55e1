"""An open editor whose attention is recorded, opened for a benchmark's arm. Imports no torch: command lines read it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from plantain.files.installed import install_line
from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels
from plantain.records import InputError

if TYPE_CHECKING:
    from plantain.models.diffusers.attention.attender import Attender as Attender
    from plantain.models.diffusers.provider import Settings


@dataclass(frozen=True, slots=True)
class AttentionLook:
    """An editor's attention, or the reason why it was not recorded.

    Attributes:
        attention: float32 (h, w), at latent size, on the model's canvas; None with a `reason`.
        frame: position of the image on that canvas.
        tokens: positions of the concept in the prompt.
        edited: uint8 (H, W, 3), the edit at the image's own size; None if there is none.
        what: description of the recorded attention.
    """

    attention: npt.NDArray[np.float32] | None
    frame: Frame
    tokens: tuple[int, ...]
    edited: Pixels | None
    what: str
    reason: str = ""

    def on_image(self) -> npt.NDArray[np.float32]:
        """Resize the map to the image's size, float32 (H, W), bilinear. Raise ValueError without a map."""
        if self.attention is None:
            raise ValueError(self.reason)
        frame = self.frame
        canvas = cv2.resize(self.attention, frame.canvas, interpolation=cv2.INTER_LINEAR)
        inner = canvas[
            frame.top : frame.top + frame.inner_height, frame.left : frame.left + frame.inner_width
        ]
        size = (frame.width, frame.height)
        return np.asarray(cv2.resize(inner, size, interpolation=cv2.INTER_LINEAR), np.float32)


def watched_editor(settings: Settings, model: str, fingerprint: str) -> Attender:
    """Return the editor of that name with recorded attention; the caller closes it.

    Raises:
        InputError: torch is missing, the method's attention cannot be recorded, or weights or settings are not those
            of `fingerprint`.
    """
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"bench attention needs torch: {install_line('torch')}")
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()
    from plantain.models.diffusers.attention.attender import Attender
    from plantain.models.diffusers.plan import plan_editor

    plan = plan_editor(model, settings)
    if plan.fingerprint != fingerprint:
        raise InputError(
            f"{model}: was generated with other weights or settings than these; give the same --settings"
        )
    return Attender(plan)
