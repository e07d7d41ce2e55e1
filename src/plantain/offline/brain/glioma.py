"""Glioma: an intra-axial, ill-defined tumour of the white matter with oedema in fingers and a mass effect."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from skimage.graph import MCP_Geometric

from plantain.offline.brain.anatomy import STEP, Brain, analyse
from plantain.offline.brain.fields import (
    FieldWindow,
    displaced,
    finish,
    fractal_noise,
    ramp,
    smooth_noise,
    window_around,
)
from plantain.offline.brain.protocol import Protocol, read_protocol
from plantain.offline.brain.symmetry import Midline, find_midline, working
from plantain.offline.brain.texture import edge_sigma, tissue_grain
from plantain.offline.brain.zones import downwards, zone_weight
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Mask

_RADIUS_MM = {"small": (5.5, 7.5), "moderate": (10.0, 13.5), "large": (16.0, 21.0)}

_WIDEST = 0.15
"""Radius over the brain's smaller diameter: pictures that were squeezed have no true millimetres."""

_CORTEX_MM = (2.5, 6.5)
"""From the inner table to where cortex ends and oedema, which keeps to the white matter, may be whole."""

_EDGE_MM = {"crisp": 1.8, "medium": 4.0, "soft": 6.5}

_SIGN = {"right": -1.0, "left": 1.0}

_FREE_MM, _EASE_MM = 10.0, 2.5
"""So much brain between tumour and dura or falx leaves no doubt that it lies inside the brain."""

_LOWEST = 0.7
"""How far down a sagittal slice: below lie brain stem and cerebellum, which are not a hemisphere."""

_STRENGTH = {"subtle": 0.0, "moderate": 0.5, "marked": 1.0}


@dataclass(frozen=True, slots=True)
class _Site:
    """Centre and mean radius of the tumour in pixels, and its place in words."""

    x: float
    y: float
    radius: float
    place: str


@dataclass(frozen=True, slots=True, eq=False)
class _Growth:
    """How the tumour fills the window: fields in [0, 1].

    Attributes:
        core: solid tumour.
        necrosis: dead centre of a high-grade tumour.
        rim: the uneven living wall between the two.
        oedema: fluid along the white matter, outside the core.
    """

    core: Field
    necrosis: Field
    rim: Field
    oedema: Field


def add(scene: Scene) -> Rendering:
    """Draws a glioma in the white matter of one hemisphere.

    Raises:
        CannotShow: not a brain slice, the sequence cannot be told, or no white matter of the asked place is in it.
    """
    brain = analyse(scene.pixels)
    protocol = read_protocol(scene.image, brain)
    midline = None if protocol.plane == "sagittal" else find_midline(brain)
    site = _choose_site(scene, brain, protocol, midline)
    window = window_around(site.x, site.y, 3.8 * site.radius + 24, brain.gray.shape)
    moved, shift = _pushed(scene, brain, window, site)
    white = _white_share(moved, protocol) * (window.cut(brain.depth) > 0)
    growth = _grow(scene, brain, protocol, window, site, moved, white)
    drawn, touched = _painted(scene, brain, protocol, window, site, moved, growth)
    drawn = np.where(window.cut_mask(brain.inside), drawn, window.cut(brain.gray))
    pressed = (shift > 1.0) & (cv2.GaussianBlur(np.abs(moved - window.cut(brain.gray)), (0, 0), 5) > 3.5)
    touched = _joined(np.asarray(touched | pressed, np.bool_)) & window.cut_mask(brain.inside)
    note = (
        f"glioma, {site.place}, about {2 * site.radius * protocol.mm:.0f} mm without oedema{protocol.remark}"
    )
    return finish(scene.pixels, window, drawn.astype(np.float32), np.asarray(touched, np.bool_), note)


def _joined(mask: Mask) -> Mask:
    """Without the specks: parts smaller than a twentieth of the largest."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    area = stats[:, cv2.CC_STAT_AREA].copy()
    area[0] = 0
    return np.asarray((area > 0.05 * area.max())[labels], np.bool_)


def _choose_site(scene: Scene, brain: Brain, protocol: Protocol, midline: Midline | None) -> _Site:
    """A place deep enough in the asked hemisphere and lobe, rich in white matter, off the ventricles."""
    intent, rng = scene.intent, scene.rng
    extent = intent.extent or ("small", "moderate", "large")[int(rng.integers(3))]
    low, high = _RADIUS_MM.get(extent, _RADIUS_MM["moderate"])
    radius = min(float(rng.uniform(low, high)) / protocol.mm, _WIDEST * min(brain.width, brain.height))
    side = intent.side if intent.side in _SIGN else ("right", "left")[int(rng.integers(2))]
    small = working(brain.gray)
    y, x = (axis.astype(np.float32) * STEP for axis in np.mgrid[: small.shape[0], : small.shape[1]])
    depth = brain.depth[::STEP, ::STEP]
    reach = max(0.7 * radius / STEP, 2.0)
    white = cv2.GaussianBlur(_white_share(small, protocol) * (depth > 0), (0, 0), reach)
    fluid = cv2.GaussianBlur(_fluid_share(small, protocol), (0, 0), 0.8 * reach)
    weight = np.where(depth > min(0.95 * radius + 8, 0.55 * float(depth.max())), white**3, 0)
    weight = weight * np.exp(-fluid / 0.06)
    place, away = f"{intent.zone} " if intent.zone else "", depth
    if midline is not None:
        offset = midline.offset(x, y) * np.float32(_SIGN[side])
        weight = np.where(offset > max(0.8 * radius, 0.1 * brain.width), weight, 0)
        place, away = f"{side} {place}", np.minimum(depth, offset)
    else:
        weight = np.where(downwards(y, brain, protocol.plane) < _LOWEST, weight, 0)
    weight = weight * np.exp(np.clip((away - radius) * protocol.mm, 0, _FREE_MM) / _EASE_MM)
    weight = weight * zone_weight(intent.zone, x, y, brain, protocol.plane)
    weight = np.where(weight > 0.25 * weight.max(), weight, 0).ravel().astype(np.float64)
    if weight.sum() <= 1e-9:
        raise CannotShow(
            f"glioma: no white matter of the asked place ({place.strip() or 'any'}) in this slice"
        )
    at = int(rng.choice(weight.size, p=weight / weight.sum()))
    return _Site(float(x.ravel()[at]), float(y.ravel()[at]), radius, f"{place}white matter".strip())


def _white_share(gray: Field, protocol: Protocol) -> Field:
    """How much a pixel looks like white matter, 0 to 1, by its grey level."""
    gap = max(abs(protocol.white - protocol.grey), 0.1 * protocol.grey)
    share = np.exp(-(((gray - np.float32(protocol.white)) / np.float32(0.9 * gap)) ** 2))
    if protocol.sequence == "T1":
        share = np.where(gray > protocol.white, 1.0, share)
    result: Field = share.astype(np.float32)
    return result


def _fluid_share(gray: Field, protocol: Protocol) -> Field:
    half = 0.5 * (protocol.fluid + protocol.grey)
    bright = protocol.fluid > protocol.grey
    result: Field = ((gray > half) if bright else (gray < half)).astype(np.float32)
    return result


def _pushed(scene: Scene, brain: Brain, window: FieldWindow, site: _Site) -> tuple[Field, Field]:
    """The slice with tissue pressed outwards from the centre, in proportion to size; nothing at the inner table."""
    x, y = window.grid()
    dx, dy = x - np.float32(site.x), y - np.float32(site.y)
    away = np.hypot(dx, dy) + np.float32(1e-3)
    radius = np.float32(site.radius)
    strength = np.float32(0.50 * (0.6 + 0.4 * _STRENGTH[scene.intent.conspicuity or "moderate"]))
    lobed = 1 + 0.15 * smooth_noise(window.shape, 1.6 * site.radius, scene.rng)
    fall = np.clip(1 - away / (3.6 * radius), 0, 1) ** 2
    held = np.clip((window.cut(brain.depth) - 6) / (0.9 * radius), 0, 1)
    held = held * held * (3 - 2 * held)
    shift = strength * radius * (away / (away + 0.5 * radius)) * 1.4 * fall * held * lobed
    shift = cv2.GaussianBlur(np.minimum(shift, 0.6 * away).astype(np.float32), (0, 0), 0.06 * site.radius + 1)
    moved = displaced(brain.gray, x - shift * dx / away, y - shift * dy / away)
    return moved, shift


def _grow(
    scene: Scene,
    brain: Brain,
    protocol: Protocol,
    window: FieldWindow,
    site: _Site,
    moved: Field,
    white: Field,
) -> _Growth:
    rng, strength = scene.rng, _STRENGTH[scene.intent.conspicuity or "moderate"]
    x, y = window.grid()
    turn, flat = float(rng.uniform(0, np.pi)), float(rng.uniform(0.72, 0.95))
    u = (x - site.x) * np.cos(turn) + (y - site.y) * np.sin(turn)
    v = ((y - site.y) * np.cos(turn) - (x - site.x) * np.sin(turn)) / flat
    away = np.hypot(u, v).astype(np.float32) * np.float32(np.sqrt(flat) / site.radius)
    rough = fractal_noise(window.shape, 0.9 * site.radius, rng, octaves=3, gain=0.5)
    travel = _travel(brain, protocol, window, site, moved, white)
    # The border bends with chance and with how easily the tissue ahead lets the tumour pass.
    level = 0.64 * away + 0.36 * np.minimum(travel, 2.5) + np.float32(0.19) * rough
    softness = _EDGE_MM.get(scene.intent.softness or "medium", 4.0) / protocol.mm / site.radius
    core = ramp(level, 1.0, softness)
    grade = 0.0 if site.radius * protocol.mm < 8 else strength
    ragged = fractal_noise(window.shape, 0.45 * site.radius, rng, octaves=3)
    inner = np.float32(0.60) + 0.10 * ragged
    necrosis = ramp(level + 0.05 * rough, inner, 0.32) * np.float32(grade)
    rim = core * (1 - ramp(level, inner, 0.18)) * np.clip(0.75 + 0.3 * ragged, 0.15, 1.2)
    spread = 1.35 + 0.55 * strength
    wisps = fractal_noise(window.shape, 0.6 * site.radius, rng)
    oedema = ramp(travel + 0.22 * wisps, spread, 1.1) * (1 - core)
    return _Growth(core, necrosis.astype(np.float32), rim.astype(np.float32), oedema.astype(np.float32))


def _travel(
    brain: Brain, protocol: Protocol, window: FieldWindow, site: _Site, moved: Field, white: Field
) -> Field:
    """Effort to get to each pixel from the centre, in radii: easy along white matter, hard through cortex or fluid."""
    size = (max(window.shape[1] // STEP, 4), max(window.shape[0] // STEP, 4))
    easy = cv2.resize(cv2.GaussianBlur(white, (0, 0), 3), size, interpolation=cv2.INTER_AREA)
    wet = cv2.resize(_fluid_share(moved, protocol), size, interpolation=cv2.INTER_AREA)
    within = cv2.resize(window.cut(brain.depth), size, interpolation=cv2.INTER_AREA) > 2
    cost = 1.0 + 2.2 * (1 - np.clip(easy, 0, 1)) + 5.0 * wet + np.where(within, 0.0, 30.0)
    start = (
        min(int((site.y - window.rows.start) * size[1] / window.shape[0]), size[1] - 1),
        min(int((site.x - window.columns.start) * size[0] / window.shape[1]), size[0] - 1),
    )
    effort, _ = MCP_Geometric(cost.astype(np.float64)).find_costs([start])
    coarse = (effort * STEP / site.radius).astype(np.float32)
    full = cv2.resize(coarse, (window.shape[1], window.shape[0]), interpolation=cv2.INTER_CUBIC)
    travel: Field = np.minimum(cv2.GaussianBlur(full, (0, 0), 2.5), 50).astype(np.float32)
    return travel


def _painted(
    scene: Scene,
    brain: Brain,
    protocol: Protocol,
    window: FieldWindow,
    site: _Site,
    moved: Field,
    growth: _Growth,
) -> tuple[Field, Mask]:
    rng, strength = scene.rng, _STRENGTH[scene.intent.conspicuity or "moderate"]
    solid, dead, oedema_level = _levels(protocol, strength)
    mottle = fractal_noise(window.shape, 0.4 * site.radius, rng)
    contrast = abs(solid - protocol.white)
    tumour = np.float32(solid) + mottle * np.float32(0.16 * contrast + 0.6)
    debris = fractal_noise(window.shape, 0.3 * site.radius, rng) * np.float32(0.14 * abs(dead - solid) + 1.2)
    tumour = tumour + (np.float32(dead) + debris - tumour) * growth.necrosis
    if protocol.enhanced:
        peak = min(max(protocol.white, protocol.grey) * (1.25 + 0.75 * strength), 235.0)
        take = growth.rim * np.float32(0.25 + 0.75 * strength if site.radius * protocol.mm >= 8 else 0.1)
        tumour = tumour + (np.float32(peak) - tumour) * np.clip(take, 0, 1)
    wet = cv2.GaussianBlur(_fluid_share(moved, protocol), (0, 0), 2)
    white = cv2.GaussianBlur(_white_share(moved, protocol), (0, 0), 2)
    depth = np.clip(window.cut(brain.depth) / 8, 0, 1)
    faint = 0.7 if protocol.sequence == "T1" else 1.0
    spared, free = (length / protocol.mm for length in _CORTEX_MM)
    below = np.clip((window.cut(brain.depth) - spared) / (free - spared), 0, 1)
    seep = growth.oedema * white * below * np.float32(faint * (0.35 + 0.5 * strength))
    solidity = (
        growth.core
        * np.float32(0.55 + 0.37 * strength)
        * (1 - 0.9 * np.clip(wet, 0, 1) * (1 - growth.necrosis))
    )
    solidity = solidity * depth
    drawn = moved + (np.float32(oedema_level) - moved) * seep
    drawn = drawn + (tumour - drawn) * solidity
    cover = cv2.GaussianBlur(np.maximum(solidity, seep).astype(np.float32), (0, 0), 1.0)
    target = np.asarray(cover > 0.03, np.bool_)
    # What is painted over has lost this share of its own grain; give as much back.
    blur = edge_sigma(brain)
    smooth = cv2.GaussianBlur(drawn - moved, (0, 0), blur)
    lost = np.sqrt(np.clip(1 - (1 - solidity) ** 2, 0, 1))
    drawn = moved + smooth + tissue_grain(brain, window, target, rng) * lost
    touched = cv2.GaussianBlur(np.abs(smooth), (0, 0), 4) > max(0.14 * contrast, 1.5)
    return np.clip(drawn, 0, 255).astype(np.float32), np.asarray(touched | (growth.core > 0.5), np.bool_)


def _levels(protocol: Protocol, strength: float) -> tuple[float, float, float]:
    """Grey levels of solid tumour, dead centre and oedema on each sequence."""
    fluid, grey, white = protocol.fluid, protocol.grey, protocol.white
    if protocol.sequence == "T1":
        solid = grey - (0.05 + 0.35 * strength) * (grey - fluid)
        return solid, grey - 0.75 * (grey - fluid), grey - 0.10 * (grey - fluid)
    if protocol.sequence == "T2":
        solid = grey + (0.20 + 0.40 * strength) * (fluid - grey)
        return solid, grey + 0.85 * (fluid - grey), grey + (0.35 + 0.2 * strength) * (fluid - grey)
    bright = max(grey, white)
    if protocol.sequence == "FLAIR":
        solid = min(bright * (1.25 + 0.50 * strength), 240.0)
        return solid, bright * (1.50 - 0.70 * strength), min(bright * (1.25 + 0.45 * strength), 235.0)
    return bright * (1.08 + 0.16 * strength), bright * 1.2, bright * (1.08 + 0.14 * strength)
