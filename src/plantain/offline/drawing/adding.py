"""Add a finding: choose its place on the anatomy map and draw it step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.findings import sequence_of, sides_on, zones_on
from plantain.offline.anatomy.brain import brain_map
from plantain.offline.anatomy.chest import chest_map
from plantain.offline.anatomy.fundus import fundus_map
from plantain.offline.anatomy.maps import AnatomyMap, CannotShow, enlarged, grow, largest_channel, reduced
from plantain.offline.drawing.primitives import PRIMITIVES
from plantain.offline.drawing.sketch import Point, Sketch
from plantain.offline.language import Intent
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.records import Finding, SourceImage, Stroke
from plantain.sources.brain_slice import UNKNOWN, estimate_slice

EXTENTS = {"small": (0.0, 0.3), "moderate": (0.35, 0.65), "large": (0.7, 1.0)}
STRENGTHS = {"subtle": 0.5, "moderate": 1.0, "marked": 1.35}
LEAST_CHANGE = 0.75
"""Grey levels from which a pixel belongs to the mask."""


@dataclass(frozen=True, slots=True, eq=False)
class Rendering:
    """An edit made by the procedural editor.

    Attributes:
        pixels: the edited image, uint8 (H, W, 3).
        mask: bool (H, W), True for pixels meant to change.
        support: "local", "diffuse" or "warp".
        note: finding and place in one line.
    """

    pixels: Pixels
    mask: Mask
    support: str
    note: str


def map_of(pixels: Pixels, image: SourceImage) -> AnatomyMap:
    """Return the anatomy map of an image.

    Raises:
        CannotShow: the modality has no map, or the image does not look like that modality.
    """
    if image.modality == "chest_xray":
        return chest_map(pixels)
    if image.modality == "fundus":
        return fundus_map(pixels)
    if image.modality == "brain_mri":
        return brain_map(pixels, image.plane)
    raise CannotShow(f"the procedural editor does not know {image.modality} images")


def completed(image: SourceImage, pixels: Pixels) -> tuple[str, str]:
    """Return (plane, sequence) of an image; for a brain slice, unrecorded ones are estimated from its pixels."""
    plane, sequence = image.plane, sequence_of(image)
    if image.modality == "brain_mri" and UNKNOWN in (plane, sequence):
        seems = estimate_slice(pixels)
        plane = seems.plane if plane == UNKNOWN else plane
        sequence = seems.sequence if sequence == UNKNOWN else sequence
    return plane, sequence


def strokes_on(finding: Finding, sequence: str, zone: str | None) -> tuple[Stroke, ...]:
    """Return the drawing steps that apply to a sequence and to a zone; to any zone of the finding for None."""
    return tuple(
        stroke
        for stroke in finding.draw
        if not stroke.on
        or sequence in stroke.on
        or zone in stroke.on
        or (zone is None and _any(stroke, finding))
    )


def _any(stroke: Stroke, finding: Finding) -> bool:
    return bool(set(stroke.on) & set(finding.zones))


def add(
    pixels: Pixels,
    image: SourceImage,
    finding: Finding,
    intent: Intent,
    rng: np.random.Generator,
    placing: np.random.Generator | None = None,
) -> Rendering:
    """Draw a finding and return the rendering; values that the intent leaves open are chosen at random.

    Args:
        pixels: uint8 (H, W, 3), the prepared original.
        image, finding: records of the image and the finding.
        intent: the intent read from the instruction.
        rng: generator of all random choices.
        placing: generator for side, zone and place instead of `rng`; None for `rng`.

    Raises:
        CannotShow: the finding cannot be drawn on this image.
    """
    plane, sequence = completed(image, pixels)
    if not finding.draw:
        raise CannotShow(f"the procedural editor cannot draw {finding.title}")
    if any("T1" in stroke.on for stroke in finding.draw) and UNKNOWN in (plane, sequence):
        raise CannotShow(
            "the slice's plane or sequence is unknown: give columns plane and sequence, or --set, at a first ingest, "
            "into a new catalogue"
        )
    anatomy = map_of(pixels, replace(image, plane=plane))
    zones, sides = zones_on(finding, image), sides_on(finding, image)
    placing = placing or rng
    zone = intent.zone or (zones[int(placing.integers(len(zones)))] if zones else None)
    side = intent.side or (sides[int(placing.integers(len(sides)))] if sides else None)
    extent = float(rng.uniform(*EXTENTS[intent.extent or "moderate"]))
    strength = STRENGTHS[intent.conspicuity or "moderate"] * float(rng.uniform(0.92, 1.08))
    strength *= contrast_of(pixels, anatomy, image.modality)
    drawn: Field = (pixels if image.modality == "fundus" else pixels[..., 1:2]).astype(np.float32)
    for half in ("left", "right") if side == "bilateral" else (side if side in ("left", "right") else "",):
        anchor: Point | None = None
        for stroke in strokes_on(finding, sequence, zone):
            where = anatomy.place(stroke.at or zone or "field") & anatomy.side(half)
            sketch = Sketch(drawn, anatomy, where, half, stroke, extent, strength, anchor, rng, placing)
            drawn, at = PRIMITIVES[stroke.shape](sketch)
            anchor = anchor or at
    rendering = finished(pixels, drawn, finding, anatomy)
    place = ", ".join(part for part in (side, zone) if part) or "where it belongs"
    return Rendering(
        rendering.pixels,
        rendering.mask,
        finding.support,
        f"{finding.title}: {place}, extent {extent:.2f}, strength {strength:.2f}",
    )


def contrast_of(pixels: Pixels, anatomy: AnatomyMap, modality: str) -> float:
    """Return the image's contrast, in [0.5, 1.4], as a factor on the grey levels in the findings' data."""
    level = reduced(pixels)[..., 1].astype(np.float32)
    if modality == "chest_xray":
        found = (
            float(np.median(level[anatomy.place("heart") & ~anatomy.organ]))
            - float(np.median(level[anatomy.organ]))
        ) / 90
    elif modality == "brain_mri":
        found = float(np.median(level[anatomy.organ])) / 90
    else:
        found = float(np.median(level[anatomy.organ])) / 80
    return float(np.clip(found, 0.5, 1.4))


def finished(pixels: Pixels, drawn: Field, finding: Finding, anatomy: AnatomyMap) -> Rendering:
    """Finish a drawing, `drawn` (H, W, 1 or 3) in grey levels: convert it to uint8, with the mask of its changes.

    Raises:
        CannotShow: no change is visible.
    """
    drawn = np.repeat(drawn, 3, axis=2) if drawn.shape[2] == 1 else drawn
    out = np.clip(np.rint(drawn), 0, 255).astype(np.uint8)
    moved = (largest_channel(cv2.absdiff(drawn, pixels.astype(np.float32))) >= LEAST_CHANGE).astype(np.uint8)
    field = enlarged(grow(anatomy.field, 1), (pixels.shape[0], pixels.shape[1])) > 0.5
    square = np.ones((3, 3), np.uint8)
    mask = cv2.dilate(cv2.morphologyEx(moved, cv2.MORPH_OPEN, square), square) > 0
    mask &= field
    if not mask.any():
        raise CannotShow("nothing of it would be seen in this image")
    out = np.where(mask[..., None], out, pixels)
    return Rendering(out, mask, finding.support, "")
