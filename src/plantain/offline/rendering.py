"""What a procedural renderer is handed and hands back; the same for every modality and finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plantain.offline.language import Intent
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import Finding, SourceImage


class CannotShow(Exception):
    """The finding cannot be shown (or found) on this view, sequence, slice or image; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What a renderer is handed.

    Attributes:
        pixels: uint8 (H, W, 3), RGB, the prepared original (grey modalities have equal channels).
        image: what is known of the image (view, sequence, plane, laterality...).
        finding: the finding's data.
        intent: what the instruction asked for; None fields are the renderer's to choose.
        rng: the only source of randomness.
    """

    pixels: Pixels
    image: SourceImage
    finding: Finding
    intent: Intent
    rng: np.random.Generator


@dataclass(frozen=True, slots=True, eq=False)
class Rendering:
    """What a renderer hands back.

    Attributes:
        pixels: uint8 (H, W, 3).
        mask: bool (H, W), what it meant to change, secondary signs included.
        support: "local", "diffuse" or "warp".
        note: one line on what was drawn, where and how large.
    """

    pixels: Pixels
    mask: Mask
    support: str
    note: str


Renderer = Callable[[Scene], Rendering]


@dataclass(frozen=True, slots=True)
class FindingRenderer:
    """The two directions of one finding. Either raises CannotShow."""

    add: Renderer
    remove: Renderer
