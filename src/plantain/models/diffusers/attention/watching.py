"""Settings for recording attention, and its records. Imports no torch: command lines read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from plantain.journal import JsonValue
from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels
from plantain.records import InputError

BLOCKS = ("output", "reference")
"""Of joint attention: shares of the output's positions, or of those of the reference image."""

Choice: TypeAlias = tuple[int, ...] | Literal["some", "all"]
"""Numbers counted from 0; or all; or "some": all of a UNet, and `SOME` evenly spaced ones of a transformer."""

SOME = 4
"""Layers, and steps, of a transformer that are recorded unless others are chosen."""

SHARE = 12
"""By default at most one of so many calls of a transformer's attention is recorded: each costs about itself again."""


def chosen(choice: Choice, count: int, *, some: int | None = None) -> tuple[int, ...]:
    """Return the chosen indices below `count`; "some": the middles of `some` equal parts, or all if `some` is None.

    Example:
        >>> chosen("some", 57, some=4), chosen("some", 3), chosen((0, 9), 4)
        ((7, 21, 35, 49), (0, 1, 2), (0,))
    """
    if isinstance(choice, tuple):
        return tuple(number for number in choice if number < count)
    if choice == "all" or some is None or count <= some:
        return tuple(range(count))
    return tuple((2 * part + 1) * count // (2 * some) for part in range(some))


def usual_steps(layers: int, recorded: int, total: int) -> int:
    """Return the default number of steps to record, 1 to `SOME`, if `recorded` of `layers` layers are recorded.

    Example:
        >>> usual_steps(57, 4, 28), usual_steps(25, 4, 4), usual_steps(12, 4, 8)
        (4, 2, 2)
    """
    return max(1, min(SOME, layers * total // (SHARE * recorded)))


@dataclass(frozen=True, slots=True)
class Watching:
    """The settings for recording attention, which MedEBench's paper does not specify.

    Attributes:
        block: part of the joint attention to record, one of `BLOCKS`.
        layers, steps: the layers and steps to record, equally weighted. Layers are numbered in the order they run.
    """

    block: str = "output"
    layers: Choice = "some"
    steps: Choice = "some"

    def check(self) -> None:
        """Check the settings. Raise InputError, naming the option, for an invalid one."""
        if self.block not in BLOCKS:
            raise InputError(f"--set block {self.block}: choose one of {', '.join(BLOCKS)}")
        for name in ("layers", "steps"):
            choice = getattr(self, name)
            if choice == () or (isinstance(choice, tuple) and min(choice) < 0):
                raise InputError(f"--set {name}: name numbers from 0 on, or all")

    def as_json(self) -> dict[str, JsonValue]:
        """Return the settings that differ from the defaults, for the record."""
        usual = Watching()
        settings: dict[str, JsonValue] = {}
        for name in ("block", "layers", "steps"):
            value = getattr(self, name)
            if value != getattr(usual, name):
                settings[name] = list(value) if isinstance(value, tuple) else value
        return settings


@dataclass(frozen=True, slots=True)
class AttentionLook:
    """An editor's attention, or the reason why it was not recorded.

    Attributes:
        attention: float32 (h, w), at latent size, on the model's canvas; None with a `reason`.
        frame: position of the image on that canvas.
        tokens: positions of the concept in the prompt.
        edited: uint8 (H, W, 3), the edit at the image's own size; None if there is none.
        layers: names of the recorded layers.
        what: description of the recorded attention.
    """

    attention: npt.NDArray[np.float32] | None
    frame: Frame
    tokens: tuple[int, ...]
    edited: Pixels | None
    layers: int
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
