"""Consolidation, pneumonia and unspecified opacity: airspaces filled or hazed in one part of one lung."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.chest.canvas import Canvas, blur, cloud, coordinates, masked_blur, open_canvas
from plantain.offline.chest.clearing import clear_opacity
from plantain.offline.chest.lesion import ZONES, zone_mask
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, erode, feather

_REACH = ((0.075, 0.10), (0.14, 0.19), (0.24, 0.31))
"""Half-height of the region in parts of the lung's height, by extent."""


@dataclass(frozen=True, slots=True)
class AirspaceLook:
    """How one finding fills the airspaces.

    Attributes:
        density: opacity by conspicuity, in parts of the lung-to-soft-tissue contrast.
        hides: how much of the vessels' contrast a full opacity takes away.
        patchy: unevenness: 0 is one even region, 1 breaks it into patches.
        bronchi: darkness of air-filled bronchi in parts of the contrast; 0 draws none.
        words: what the note calls it.
    """

    density: tuple[float, float, float]
    hides: float
    patchy: float
    bronchi: float
    words: str


CONSOLIDATION = AirspaceLook((0.18, 0.36, 0.56), 0.85, 0.3, 0.085, "even opacity that hides the vessels")
PNEUMONIA = AirspaceLook((0.16, 0.31, 0.48), 0.65, 0.8, 0.05, "patchy opacity that blurs the vessels")
OPACITY = AirspaceLook((0.13, 0.22, 0.34), 0.2, 0.45, 0.0, "hazy opacity")


def add_airspace(scene: Scene, look: AirspaceLook) -> Rendering:
    """Fills a part of one lung, or of both where the finding may be bilateral.

    Raises:
        CannotShow: no lungs, or the zone has no lung in view.
    """
    canvas = open_canvas(scene)
    extent, conspicuity, softness = canvas.extent(), canvas.conspicuity(), canvas.softness()
    both = scene.intent.side == "bilateral" and "bilateral" in scene.finding.sides
    sides = ("right", "left") if both else (canvas.side(),)
    zone = canvas.zone(ZONES)
    drawn, mask = canvas.gray, np.zeros(canvas.gray.shape, bool)
    for side in sides:
        weight = filled_region(canvas, side, zone, extent, softness, look.patchy)
        opacity = look.density[conspicuity] * canvas.contrast(side)
        drawn = fill(canvas, drawn, weight, opacity, look.hides)
        if look.bronchi and conspicuity > 0 and extent > 0:
            drawn -= look.bronchi * canvas.contrast(side) * _bronchi(canvas, side, weight)
        mask |= weight * look.density[conspicuity] > 0.03
    note = f"{look.words}, {' and '.join(sides)} {zone} zone"
    return canvas.finish(drawn.astype(np.float32), mask, "local", note)


def fill(canvas: Canvas, gray: Field, weight: Field, opacity: float, hides: float) -> Field:
    """Lifts the level by `opacity` where weight is 1, evens the lung out and hides its vessels; ribs and grain stay."""
    coarse = blur(gray, 7.0)
    # No more than a few levels are taken off: what stands out further is a rib's edge or a device.
    fine = blur(gray, 1.1) - coarse
    vessels = 9.0 * np.tanh(fine / 9.0)
    # A filled lung tends to the level of the soft tissue next to it, and its border to that is lost: none is lit up.
    tissue = canvas.chest.field & ~dilate(canvas.chest.left.mask | canvas.chest.right.mask, 6) & (gray > 20)
    ceiling = masked_blur(gray, tissue, 40.0)
    middle = canvas.contrast("right" if weight[:, : int(canvas.chest.midline)].any() else "left")
    room = np.clip((ceiling - blur(gray, 8.0)) / (0.45 * middle), 0.0, 1.0)
    filled = gray + weight * opacity * room - hides * np.minimum(1.3 * weight, 1.0) * vessels
    share = blur(tissue.astype(np.float32), 12.0)
    near = (blur(gray * tissue, 12.0) + 0.02 * ceiling) / (share + 0.02)
    soft = blur(gray, 5.0)
    over = np.maximum(blur(filled.astype(np.float32), 5.0) - np.maximum(soft, near), 0.0)
    capped: Field = filled - over * np.clip(weight * 4.0, 0.0, 1.0)
    return capped


def filled_region(canvas: Canvas, side: str, zone: str, extent: int, softness: int, patchy: float) -> Field:
    """An ill-defined region of a lung zone, 0..1, float32 (H, W); a fissure bounds it where one lies.

    Raises:
        CannotShow: no lung of the zone is in view.
    """
    lung = canvas.chest.lung(side)
    height = lung.bottom - lung.top
    room = zone_mask(canvas, side, zone)
    inner = room & erode(lung.mask, 0.05 * height)
    places = np.argwhere(inner if inner.any() else room)
    if len(places) < 50:
        raise CannotShow(f"no lung of the {side} {zone} zone is in view")
    centre = places.mean(axis=0)
    row, column = 0.55 * centre + 0.45 * places[canvas.rng.integers(len(places))]
    half = canvas.rng.uniform(*_REACH[extent]) * height
    wide = half * canvas.rng.uniform(0.85, 1.25)
    rows, columns = coordinates(canvas.gray.shape)
    tilt = canvas.rng.uniform(-0.5, 0.5)
    down = (rows - row) * np.cos(tilt) + (columns - column) * np.sin(tilt)
    across = (columns - column) * np.cos(tilt) - (rows - row) * np.sin(tilt)
    distance = np.sqrt((down / half) ** 2 + (across / wide) ** 2)
    rough = cloud(canvas.gray.shape, 0.55 * half, canvas.rng) * 0.6
    rough += cloud(canvas.gray.shape, max(8.0, 0.2 * half), canvas.rng) * 0.35
    edge = (0.5, 0.85, 1.2)[softness]
    body = np.clip((0.95 - distance + 0.26 * rough) / edge + 0.5, 0, 1)
    body = body * body * (3 - 2 * body)
    uneven = 1 - patchy * 0.55 * np.clip(0.5 - 0.7 * rough, 0, 1)
    weight = body * uneven * feather(dilate(lung.mask, 5), 6.0)
    if extent == 2 and side == "right" and zone != "lower":
        weight = weight * _fissure(canvas, zone)
    return blur(weight.astype(np.float32), 2.0)


def _fissure(canvas: Canvas, zone: str) -> Field:
    """The minor fissure, about level, at the middle of the right lung: bounds the upper and the middle lobe."""
    lung = canvas.chest.right
    rows, columns = coordinates(canvas.gray.shape)
    height = lung.bottom - lung.top
    middle_x = 0.5 * (lung.lateral[:, 0].min() + lung.medial[:, 0].max())
    bend = 0.045 * height * ((columns - middle_x) / (0.4 * height)) ** 2
    edge = lung.top + canvas.rng.uniform(0.42, 0.5) * height + bend
    sign = 1.0 if zone == "upper" else -1.0
    bounded: Field = np.clip(0.5 + sign * (edge - rows) / 7.0, 0, 1)
    return bounded


def _bronchi(canvas: Canvas, side: str, weight: Field) -> Field:
    """Air-filled bronchi, 0..1: dark branches that run from the hilum's direction through the filled lung."""
    lung = canvas.chest.lung(side)
    height = lung.bottom - lung.top
    hilum_y = lung.top + 0.5 * height
    hilum = np.array([float(lung.medial_at(np.array([hilum_y]))[0]), hilum_y])
    rows, columns = np.nonzero(weight > 0.55)
    sheet = np.zeros(weight.shape, np.float32)
    if len(rows) < 400:
        return sheet
    centre = np.array([columns.mean(), rows.mean()])
    spread = float(np.hypot(columns.std(), rows.std()))
    away = (centre - hilum) / max(1.0, float(np.hypot(*(centre - hilum))))
    for _ in range(int(canvas.rng.integers(1, 4))):
        turn = canvas.rng.uniform(-0.7, 0.7)
        heading = np.array([away[0] * np.cos(turn) - away[1] * np.sin(turn),
                            away[0] * np.sin(turn) + away[1] * np.cos(turn)])  # fmt: skip
        start = centre - 0.8 * spread * away + canvas.rng.normal(0, 0.25 * spread, 2)
        _branch(sheet, canvas.rng, start, heading, 1.6 * spread, canvas.rng.uniform(3.0, 5.0))
    shown: Field = blur(sheet, 1.8) * np.clip((weight - 0.35) / 0.4, 0, 1)
    return shown


def _branch(
    sheet: Field, rng: np.random.Generator, start: np.ndarray, heading: np.ndarray, length: float, width: float
) -> None:  # fmt: skip
    """Draws one branch that wanders, tapers and forks once."""
    place, step = start.astype(float), 5.0
    count = max(4, int(length / step))
    fork = int(count * rng.uniform(0.35, 0.6)) if width > 2.4 else -1
    for index in range(count):
        turn = rng.normal(0, 0.13)
        heading = np.array([heading[0] - turn * heading[1], heading[1] + turn * heading[0]])
        heading /= np.hypot(*heading)
        onward = place + step * heading
        now = width * (1 - 0.55 * index / count)
        a, b = (tuple(np.round(p * 16).astype(int).tolist()) for p in (place, onward))
        cv2.line(
            sheet,
            a,
            b,
            float(np.sin(np.pi * (index + 0.5) / count) ** 0.5),
            max(1, round(now)),
            cv2.LINE_8,
            4,
        )
        place = onward
        if index == fork:
            aside = 0.6 * rng.choice([-1.0, 1.0])
            other = np.array([heading[0] - aside * heading[1], heading[1] + aside * heading[0]])
            _branch(sheet, rng, place, other / np.hypot(*other), 0.5 * length, 0.6 * width)


def remove_airspace(scene: Scene) -> Rendering:
    """Clears the brighter of two like places in the two lungs.

    Raises:
        CannotShow: neither lung is clearly denser than the other anywhere.
    """
    canvas = open_canvas(scene)
    mask: Mask = np.zeros(canvas.gray.shape, bool)
    return clear_opacity(canvas, mask, scene.finding.title)


def add_consolidation(scene: Scene) -> Rendering:
    return add_airspace(scene, CONSOLIDATION)


def add_pneumonia(scene: Scene) -> Rendering:
    return add_airspace(scene, PNEUMONIA)


def add_opacity_of_lung(scene: Scene) -> Rendering:
    return add_airspace(scene, OPACITY)


CONSOLIDATION_RENDERER = FindingRenderer(add_consolidation, remove_airspace)
PNEUMONIA_RENDERER = FindingRenderer(add_pneumonia, remove_airspace)
OPACITY_RENDERER = FindingRenderer(add_opacity_of_lung, remove_airspace)
