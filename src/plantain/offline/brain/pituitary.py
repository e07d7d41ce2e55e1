"""Pituitary macroadenoma: a lobulated mass of the sella that rises through a waist into the suprasellar cistern."""

from __future__ import annotations

import cv2
import numpy as np

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
from plantain.offline.brain.mass import find_mass
from plantain.offline.brain.protocol import Protocol, read_protocol
from plantain.offline.brain.sella import Sella, find_sella
from plantain.offline.brain.texture import edge_sigma, tissue_grain
from plantain.offline.rendering import Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate
from plantain.pixels.grain import inpaint_smooth

_RADIUS_MM = {"small": (5.0, 6.0), "moderate": (7.5, 9.5), "large": (11.0, 14.0)}

BORDER = 0.2
"""Where the brain's border is drawn on across the place of a removed mass, between brain (0) and cistern (1): low,
since the mass had lifted the brain."""

_EDGE_MM = {"crisp": 0.6, "medium": 1.1, "soft": 2.0}


def add(scene: Scene) -> Rendering:
    """Draws a macroadenoma in the sella or the cistern above it.

    Raises:
        CannotShow: not a brain slice, the sequence cannot be told, or the sella is not in this slice.
    """
    brain = analyse(scene.pixels)
    protocol = read_protocol(scene.image, brain)
    sella = find_sella(brain, protocol)
    rng = scene.rng
    extent = scene.intent.extent or ("small", "moderate", "large")[int(rng.integers(3))]
    low, high = _RADIUS_MM.get(extent, _RADIUS_MM["moderate"])
    radius = float(rng.uniform(low, high)) / protocol.mm
    x, y = _centre(scene, protocol, sella, radius)
    window = window_around(x, y, 3.2 * radius + 30, brain.gray.shape)
    pocket = _pocket(sella, window)
    edge = _surface(scene, protocol, window, x, y, radius, pocket)
    moved, shift = _lifted(brain, window, pocket, x, y, edge, protocol.mm)
    drawn, cover = _painted(scene, brain, protocol, window, edge, moved)
    pressed = (shift > 1.0) & (cv2.GaussianBlur(np.abs(moved - window.cut(brain.gray)), (0, 0), 4) > 3.0)
    touched = np.asarray((cover > 0.1) | pressed, np.bool_)
    size = 2 * radius * protocol.mm
    note = f"pituitary macroadenoma, about {size:.0f} mm wide{protocol.remark}"
    return finish(scene.pixels, window, drawn, touched, note)


def remove(scene: Scene) -> Rendering:
    """Finds a sellar mass and gives the cistern back.

    Raises:
        CannotShow: not a brain slice, or no such mass found.
    """
    brain = analyse(scene.pixels)
    protocol = read_protocol(scene.image, brain)
    mass = find_mass(brain, protocol)
    ys, xs = np.nonzero(mass)
    reach = max(int(np.ptp(xs)), int(np.ptp(ys))) / 2 + 80
    window = window_around(float(xs.mean()), float(ys.mean()), reach, brain.gray.shape)
    inner = window.cut_mask(mass)
    drawn = _without(brain, protocol, window, inner, scene.rng)
    note = f"pituitary mass removed, cistern restored: plausible, not this patient's anatomy{protocol.remark}"
    return finish(scene.pixels, window, drawn, inner, note)


def _without(
    brain: Brain, protocol: Protocol, window: FieldWindow, inner: Mask, rng: np.random.Generator
) -> Field:
    """The window with the cistern where the mass was, and brain where the brain's border runs across it."""
    gray = window.cut(brain.gray)
    ring = dilate(inner, 5.0 / protocol.mm) & ~inner
    fluid = ring & _is_fluid(gray, protocol)
    if brain.stripped or fluid.sum() < 200:
        cistern = np.full(gray.shape, _emptiness(brain, protocol), np.float32)
    else:
        # The membrane hangs in fluid or bone only: brain that touched the mass must not be smeared into the cistern.
        level = np.float32(np.median(gray[fluid]))
        cistern = inpaint_smooth(np.where(fluid | inner, gray, level).astype(np.float32), inner)
        cistern += tissue_grain(brain, window, inner, rng) * np.float32(0.5)
    empty = _is_fluid(gray, protocol) & ~inner
    blur = max(edge_sigma(brain), 2.2)
    free = inpaint_smooth(cv2.GaussianBlur(empty.astype(np.float32), (0, 0), 2.0), inner)
    # A mass that filled the cistern leaves no border to continue: then all of its place is cistern.
    hollow = inner & (free > BORDER) if fluid.sum() > 0.5 * ring.sum() else inner
    closed = inner & ~hollow
    drawn = gray
    near = window.cut_mask(brain.inside) & ~dilate(inner | empty, blur)
    if closed.any() and near.any():
        tissue = inpaint_smooth(gray, ~near) + tissue_grain(brain, window, closed, rng)
        drawn = gray + _eased(closed, blur) * (tissue - gray)
    # Brain ends at the cistern as softly as everything else here does.
    cleared: Field = np.clip(drawn + _eased(hollow, blur) * (cistern - drawn), 0, 255).astype(np.float32)
    return cleared


def _eased(mask: Mask, blur: float) -> Field:
    """1 in the mask, falling to 0 a little outside it."""
    ease: Field = cv2.GaussianBlur(dilate(mask, 1.2 * blur).astype(np.float32), (0, 0), blur)
    return ease


def _is_fluid(gray: Field, protocol: Protocol) -> Mask:
    if protocol.sequence == "T2":
        return np.asarray(gray > 0.5 * (protocol.fluid + protocol.grey), np.bool_)
    return np.asarray(gray < 0.3 * protocol.grey, np.bool_)


def _emptiness(brain: Brain, protocol: Protocol) -> float:
    """What fills the sella where the mass left none of it to be seen: with the skull its contents were taken off."""
    outside = brain.gray[~brain.head]
    return float(np.median(outside)) if brain.stripped and outside.size else protocol.fluid


def _centre(scene: Scene, protocol: Protocol, sella: Sella, radius: float) -> tuple[float, float]:
    """Axial: the pocket's centre. Otherwise hung from its roof, so that it meets (and lifts) the chiasm."""
    jitter = float(scene.rng.uniform(-0.6, 0.6)) / protocol.mm
    if protocol.plane == "axial":
        return sella.x + jitter, sella.y
    hang = 1.25 if scene.intent.zone == "sella" else 0.95
    return sella.x + jitter, sella.roof + hang * radius


def _pocket(sella: Sella, window: FieldWindow) -> Field:
    """How far inside the pocket each pixel of the window lies, 0 outside, in full pixels."""
    room = cv2.distanceTransform(sella.pocket.astype(np.uint8), cv2.DIST_L2, 5).astype(np.float32) * STEP
    size = (room.shape[1] * STEP, room.shape[0] * STEP)
    return window.cut(np.asarray(cv2.resize(room, size, interpolation=cv2.INTER_LINEAR), np.float32))


def _surface(
    scene: Scene, protocol: Protocol, window: FieldWindow, x: float, y: float, radius: float, pocket: Field
) -> Field:
    """Signed distance-like field in pixels: negative inside the tumour."""
    rng = scene.rng
    gx, gy = window.grid()
    dx, dy = gx - np.float32(x), gy - np.float32(y)
    if protocol.plane == "axial":
        # It takes the shape of the sella's walls while it fits, and pushes past them when it does not.
        round_ = np.hypot(dx / 1.08, dy / 0.92)
        walled = np.maximum(round_ - np.float32(1.25 * radius), np.float32(0.5 / protocol.mm) - pocket)
        field = np.minimum(walled, round_ - np.float32(0.85 * radius))
    else:
        # A snowman: a broad lobe in the sella, a smaller one above, a waist where the diaphragm holds it.
        upper = np.hypot(dx / 0.92, dy + np.float32(0.30 * radius)) - np.float32(0.72 * radius)
        lower = np.hypot(dx / 1.12, dy - np.float32(0.62 * radius)) - np.float32(0.80 * radius)
        soft = np.float32(0.22 * radius)
        blend = np.clip(0.5 + 0.5 * (lower - upper) / soft, 0, 1)
        field = lower * (1 - blend) + upper * blend - soft * blend * (1 - blend)
    lobes = smooth_noise(window.shape, 0.75 * radius, rng) * np.float32(0.07 * radius)
    surface: Field = (field + lobes).astype(np.float32)
    return surface


def _lifted(
    brain: Brain, window: FieldWindow, pocket: Field, x: float, y: float, edge: Field, mm: float
) -> tuple[Field, Field]:
    """The slice with whatever brain the tumour would overlap pressed away from its centre."""
    overlap = cv2.GaussianBlur(((edge < 1.0 / mm) & (pocket < 1.0)).astype(np.float32), (0, 0), 3.0 / mm)
    gx, gy = window.grid()
    dx, dy = gx - np.float32(x), gy - np.float32(y)
    away = np.hypot(dx, dy) + np.float32(1e-3)
    depth = cv2.GaussianBlur(np.maximum(-edge, 0) * (pocket < 1.0), (0, 0), 2.5 / mm)
    need = (
        float(np.percentile(np.maximum(-edge, 0)[(edge < 0) & (pocket < 1.0)], 90))
        if (overlap > 0.3).any()
        else 0.0
    )
    spread = cv2.GaussianBlur(np.maximum(overlap, 0), (0, 0), 4.0 / mm)
    reach = np.clip(1 - np.maximum(edge, 0) / (9.0 / mm), 0, 1) ** 2
    shift = np.minimum(need * np.clip(3.0 * spread, 0, 1) * reach + 0.2 * depth, 0.6 * away).astype(
        np.float32
    )
    moved = displaced(brain.gray, gx - shift * dx / away, gy - shift * dy / away)
    return moved, shift


def _painted(
    scene: Scene, brain: Brain, protocol: Protocol, window: FieldWindow, edge: Field, moved: Field
) -> tuple[Field, Field]:
    rng, mm = scene.rng, protocol.mm
    strength = {"subtle": 0.0, "moderate": 0.5, "marked": 1.0}.get(
        scene.intent.conspicuity or "moderate", 0.5
    )
    grey, white, fluid = protocol.grey, protocol.white, protocol.fluid
    if protocol.enhanced:
        level = min(max(grey, white) * (1.20 + 0.35 * strength), 225.0)
    elif protocol.sequence == "T1":
        level = grey * (0.90 + 0.05 * strength)
    elif protocol.sequence == "T2":
        level = grey + (0.05 + 0.25 * strength) * (fluid - grey)
    else:
        level = grey * (0.95 + 0.15 * strength)
    level -= (1 - strength) * 0.12 * max(level - fluid, 0.0) if protocol.sequence != "T2" else 0.0
    blur = edge_sigma(brain)
    softness = max(_EDGE_MM.get(scene.intent.softness or "medium", 1.1) / mm, 2.0 * blur)
    cover = cv2.GaussianBlur(ramp(edge, 0.0, softness), (0, 0), blur)
    mottle = fractal_noise(edge.shape, 4.5 / mm, rng) * np.float32(0.022 * level)
    # A little darker towards its surface, as partial volume makes it.
    dome = np.clip(-edge / (3.0 / mm), 0, 1)
    tumour = np.float32(level) * (0.93 + 0.07 * dome) + mottle
    drawn = moved + (tumour - moved) * cover
    target = np.asarray(cover > 0.03, np.bool_)
    # Bone, air and vessels around it are rough: with the grain of the quietest brain it would look smoothed.
    drawn = drawn + tissue_grain(brain, window, target, rng, quiet=65.0) * cover
    return np.clip(drawn, 0, 255).astype(np.float32), cover.astype(np.float32)
