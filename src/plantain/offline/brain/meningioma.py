"""Meningioma: an extra-axial dome, broad on the dura, that buckles the cortex under it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from scipy.ndimage import minimum_filter1d, percentile_filter

from plantain.offline.brain.anatomy import Brain, analyse
from plantain.offline.brain.fields import (
    FieldWindow,
    displaced,
    finish,
    fractal_noise,
    ramp,
    smooth_noise,
    window_around,
)
from plantain.offline.brain.inner_table import outline, roughness, under_bone
from plantain.offline.brain.protocol import Protocol, read_protocol
from plantain.offline.brain.symmetry import Midline, find_midline
from plantain.offline.brain.texture import edge_sigma, tissue_grain
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Mask

_BASE_MM = {"small": (8.0, 10.5), "moderate": (13.0, 17.0), "large": (20.0, 26.0)}
"""Half width of the dural base, from and to."""

_WIDEST = 0.19
"""Half width of a base over the brain's smaller diameter: pictures that were squeezed have no true millimetres."""

_DOUBT = 0.08
"""Share of a base where the bone is in doubt by which a place is e times rarer."""

_BRIGHTEST = 235.0
"""Grey levels: what is brighter would be cut off."""

_EDGE_MM = {"crisp": 0.7, "medium": 1.3, "soft": 2.4}

_SIGN = {"right": -1.0, "left": 1.0}
"""The patient's side as a sign of image x (radiological display)."""


@dataclass(frozen=True, slots=True)
class _Base:
    """Where the tumour sits: a point on the dura, the direction into the brain, half width and height (px)."""

    x: float
    y: float
    nx: float
    ny: float
    half_width: float
    height: float
    falx: bool
    place: str


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Along (`t`) and into the brain (`d`, from the dura) for every pixel of the window, in pixels."""

    window: FieldWindow
    t: Field
    d: Field


def add(scene: Scene) -> Rendering:
    """Draws a meningioma on the convexity or the falx.

    Raises:
        CannotShow: not a brain slice, the sequence cannot be told, or no dura of the asked place is in the slice.
    """
    brain = analyse(scene.pixels)
    protocol = read_protocol(scene.image, brain)
    midline = None if protocol.plane == "sagittal" else find_midline(brain)
    base = _choose_base(scene, brain, protocol, midline)
    frame = _frame(brain, protocol, base)
    dome, push = _dome(frame, base, scene.rng)
    moved = _pushed(brain, frame, base, push)
    drawn, touched = _painted(scene, brain, protocol, frame, base, dome, push, moved)
    size = 2 * base.half_width * protocol.mm
    note = f"meningioma on the {base.place}, base about {size:.0f} mm{protocol.remark}"
    return finish(scene.pixels, frame.window, drawn, touched, note)


def _choose_base(scene: Scene, brain: Brain, protocol: Protocol, midline: Midline | None) -> _Base:
    intent, rng = scene.intent, scene.rng
    extent = intent.extent or ("small", "moderate", "large")[int(rng.integers(3))]
    low, high = _BASE_MM.get(extent, _BASE_MM["moderate"])
    half = min(float(rng.uniform(low, high)) / protocol.mm, _WIDEST * min(brain.width, brain.height))
    height = half * float(rng.uniform(0.75, 1.0))
    zone = intent.zone
    if zone == "falx" and midline is None:
        raise CannotShow("meningioma of the falx: a sagittal slice runs along the falx")
    side = intent.side if intent.side in _SIGN else ("right", "left")[int(rng.integers(2))]
    if zone is None:
        often = 1.0 if brain.vague else 0.25
        zone = "falx" if midline is not None and rng.random() < often else "convexity"
    if zone == "falx" and midline is not None:
        return _on_falx(rng, brain, protocol, midline, side, 0.9 * half, 0.85 * height)
    return _on_convexity(rng, brain, protocol, midline, side, half, height)


def _on_falx(
    rng: np.random.Generator,
    brain: Brain,
    protocol: Protocol,
    midline: Midline,
    side: str,
    half: float,
    height: float,
) -> _Base:
    """A place on the midline, in front of or behind the corpus callosum (axial) or above it (coronal)."""
    ax, ay = midline.along
    nx, ny = midline.normal
    top, bottom = _span(brain, midline)
    length = bottom - top
    spans = [(0.10, 0.20)] if protocol.plane == "coronal" else [(0.10, 0.22), (0.80, 0.90)]
    low, high = spans[int(rng.integers(len(spans)))]
    at = top + length * float(rng.uniform(low, high))
    sign = _SIGN[side]
    half = min(half, 0.16 * length)
    at = min(max(at, top + 1.05 * half), bottom - 1.05 * half)
    return _Base(
        midline.x + ax * at,
        midline.y + ay * at,
        sign * nx,
        sign * ny,
        half,
        min(height, half),
        True,
        f"falx, {side} side",
    )


def _span(brain: Brain, midline: Midline) -> tuple[float, float]:
    """Where the midline enters and leaves the brain, as distances from its point."""
    steps = np.arange(-brain.gray.shape[0], brain.gray.shape[0])
    ax, ay = midline.along
    x, y = np.rint(midline.x + ax * steps).astype(int), np.rint(midline.y + ay * steps).astype(int)
    valid = (x >= 0) & (y >= 0) & (x < brain.gray.shape[1]) & (y < brain.gray.shape[0])
    on = steps[valid][brain.inside[y[valid], x[valid]]]
    return float(on.min()), float(on.max())


def _on_convexity(
    rng: np.random.Generator,
    brain: Brain,
    protocol: Protocol,
    midline: Midline | None,
    side: str,
    half: float,
    height: float,
) -> _Base:
    """A place on the inner table that is smooth over the whole base, above the skull base."""
    if brain.vague:
        raise CannotShow("meningioma of the convexity: the inner table cannot be told from the scalp here")
    line, normal = outline(brain)
    x, y = line[:, 0], line[:, 1]
    top = float(y.min())
    rise = (y - top) / brain.height
    allowed = np.ones(len(x), np.bool_)
    if midline is not None:
        offset = midline.offset(x.astype(np.float32), y.astype(np.float32)) * _SIGN[side]
        allowed &= offset > max(0.16 * brain.width, 0.5 * half)
    if protocol.plane != "axial":
        allowed &= rise < 0.45
    else:
        allowed &= (rise > 0.08) & (rise < 0.92)
    doubt = np.zeros(len(x))
    if not brain.stripped:
        under, sure = under_bone(brain, protocol, line, normal, half)
        allowed &= under
        doubt = (1 - sure) / _DOUBT
    rough = roughness(line, normal, half)
    weight = np.where(allowed, np.exp(-rough / 6.0), 0.0)
    if weight.sum() < 1e-6:
        raise CannotShow("meningioma: no smooth convexity of the asked side in this slice")
    weight = weight * np.exp(doubt[allowed].min() - doubt)
    at = int(rng.choice(len(x), p=weight / weight.sum()))
    where = f"{side} convexity" if midline is not None else "convexity"
    return _Base(
        float(x[at]), float(y[at]), float(normal[at, 0]), float(normal[at, 1]), half, height, False, where
    )


def _frame(brain: Brain, protocol: Protocol, base: _Base) -> _Frame:
    reach = 1.15 * (base.half_width * 2.0 + base.height * 2.0)
    window = window_around(
        base.x + base.nx * base.height, base.y + base.ny * base.height, reach, brain.gray.shape
    )
    x, y = window.grid()
    dx, dy = x - np.float32(base.x), y - np.float32(base.y)
    q = (dx * np.float32(base.nx) + dy * np.float32(base.ny)).astype(np.float32)
    t = (dy * np.float32(base.nx) - dx * np.float32(base.ny)).astype(np.float32)
    span = int(np.ceil(reach * 1.5))
    across = np.arange(-span, span + 1, dtype=np.float32)
    q0 = _fissure(brain, protocol, base, across) if base.falx else _inner_table(brain, protocol, base, across)
    table = np.interp(t.ravel(), across, q0).reshape(t.shape).astype(np.float32)
    return _Frame(window, t, (q - table).astype(np.float32))


def _columns(plane: Field, base: _Base, across: Field, into: Field) -> Field:
    """The plane read along the base's normal (rows, `into`) for each place along the base (`across`)."""
    x = base.x - base.ny * across[None, :] + base.nx * into[:, None]
    y = base.y + base.nx * across[None, :] + base.ny * into[:, None]
    seen: Field = cv2.remap(plane, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR)
    return seen


def _inner_table(brain: Brain, protocol: Protocol, base: _Base, across: Field) -> Field:
    """Where brain or fluid begins along the normal, bone left out, per place along the base."""
    margin = int(0.9 * base.half_width) + 12
    into = np.arange(-margin, int(base.half_width) + 12, dtype=np.float32)
    seen = _columns(brain.inside.astype(np.float32), base, across, into) > 0.5
    first = np.argmax(seen, axis=0)
    start = np.where(seen.any(axis=0), into[first], into[-1]).astype(np.float32)
    if not brain.stripped:
        # From a little inside outwards: bone is dark on every sequence, so the first dark pixel ends the brain.
        gray = _columns(cv2.GaussianBlur(brain.gray, (0, 0), 1.5), base, across, into)
        reach = int(5.0 / protocol.mm)
        for column in range(len(across)):
            inner = min(first[column] + reach, len(into) - 1)
            dark = np.flatnonzero(gray[first[column] : inner, column] < 0.5 * protocol.grey)
            if len(dark) and dark[-1] < reach - 2:
                start[column] += dark[-1] + 1
        # A sulcus runs into the brain and is no table; where bone is bright no dark run is seen: most columns decide.
        start = percentile_filter(start, 45, size=2 * int(5.0 / protocol.mm) + 1).astype(np.float32)
    smooth: Field = cv2.GaussianBlur(start[None, :], (0, 0), 2.0 / protocol.mm)[0]
    return smooth


def _far_table(brain: Brain, base: _Base, across: Field, most: int) -> Field:
    """How far the brain reaches along the normal, at most so many pixels, per place along the base."""
    into = np.arange(0, most + 1, dtype=np.float32)
    seen = _columns(brain.inside.astype(np.float32), base, across, into) > 0.5
    last = np.where(seen.any(axis=0), most - np.argmax(seen[::-1], axis=0), 0).astype(np.float32)
    least = minimum_filter1d(last, 2 * int(0.2 * base.half_width) + 1)
    smooth: Field = cv2.GaussianBlur(least[None, :], (0, 0), 0.1 * base.half_width)[0]
    return smooth


def _fissure(brain: Brain, protocol: Protocol, base: _Base, across: Field) -> Field:
    """The tumour's side of the interhemispheric fissure as it really runs, per place along the base."""
    reach = 4.0 / protocol.mm
    into = np.arange(-reach, reach + 1, dtype=np.float32)
    seen = _columns(cv2.GaussianBlur(brain.gray, (0, 0), 2.0), base, across, into)
    bright = protocol.fluid > protocol.grey
    score = (seen if bright else -seen) / max(abs(protocol.grey - protocol.fluid), 5.0)
    score = cv2.GaussianBlur(score, (0, 0), sigmaX=3.0 / protocol.mm, sigmaY=0.1)
    score = score - 0.5 * (into[:, None] / reach) ** 2
    run = cv2.GaussianBlur(into[np.argmax(score, axis=0)][None, :], (0, 0), 3.0 / protocol.mm)[0]
    beside: Field = (run + np.float32(0.7 / protocol.mm)).astype(np.float32)
    return beside


def _dome(frame: _Frame, base: _Base, rng: np.random.Generator) -> tuple[Field, Field]:
    """Height of the tumour's surface and of the brain's push above the dura, per pixel, in pixels."""
    span = int(np.abs(frame.t).max()) + 2
    t = np.arange(-span, span + 1, dtype=np.float64)
    ratio = np.clip(np.abs(t) / base.half_width, 0, 1)
    profile = base.height * (1 - ratio**2) ** float(rng.uniform(0.5, 0.62))
    lobes = smooth_noise((1, len(t)), 0.55 * base.half_width, rng)[0] * 0.05
    lean = float(rng.uniform(-0.1, 0.1)) * t / base.half_width
    profile = profile * np.clip(1 + lobes + lean, 0.6, 1.4)
    profile = cv2.GaussianBlur(profile[None, :], (0, 0), 0.06 * base.half_width)[0]
    skirt = cv2.GaussianBlur(profile[None, :].astype(np.float32), (0, 0), 0.12 * base.half_width)[0]
    dome = np.interp(frame.t.ravel(), t, profile).reshape(frame.t.shape).astype(np.float32)
    push = np.interp(frame.t.ravel(), t, 0.9 * skirt).reshape(frame.t.shape).astype(np.float32)
    return dome, push


def _pushed(brain: Brain, frame: _Frame, base: _Base, push: Field) -> Field:
    """The slice with the brain pressed inwards: most at the surface, nothing at its reach or at the bone beyond."""
    span = int(np.abs(frame.t).max()) + 2
    across = np.arange(-span, span + 1, dtype=np.float32)
    far = _far_table(brain, base, across, int(3.0 * base.height + 0.5 * base.half_width))
    x, y = frame.window.grid()
    table = (
        (x - np.float32(base.x)) * np.float32(base.nx)
        + (y - np.float32(base.y)) * np.float32(base.ny)
        - frame.d
    )
    reach = np.interp(frame.t.ravel(), across, far).reshape(frame.t.shape).astype(np.float32) - table
    share = np.clip((frame.d - push) / np.maximum(reach - push, 1.0), 0, 1)
    shift = np.where(frame.d >= 0, push * (1 - share) ** 2, 0).astype(np.float32)
    shift = np.minimum(shift, np.maximum(frame.d, 0)).astype(np.float32)
    return displaced(brain.gray, x - shift * np.float32(base.nx), y - shift * np.float32(base.ny))


def _painted(
    scene: Scene,
    brain: Brain,
    protocol: Protocol,
    frame: _Frame,
    base: _Base,
    dome: Field,
    push: Field,
    moved: Field,
) -> tuple[Field, Mask]:
    rng, mm = scene.rng, protocol.mm
    blur = edge_sigma(brain)
    softness = max(_EDGE_MM.get(scene.intent.softness or "medium", 1.3) / mm, 2.0 * blur)
    surface = dome + fractal_noise(frame.d.shape, 0.35 * base.half_width, rng) * np.float32(
        0.035 * base.height
    )
    within = ramp(-frame.d, 0.0, 2.0)
    if base.falx:  # which ends at the inner table
        within = within * ramp(-frame.window.cut(brain.depth), -3.0, 4.0)
    under = np.abs(frame.t) < base.half_width
    body = ramp(frame.d, surface, softness) * within * under
    gap = np.float32((1.0 if base.half_width * mm < 12 else 1.4) / mm)
    seam = ramp(np.abs(frame.d - np.maximum(surface, push) - 0.4 * gap), 0.5 * gap, gap)
    seam = np.maximum(seam, ramp(frame.d, push, 2.0) * ~under) * within * (push > 1.0)
    breaks = np.clip(0.72 + 0.3 * smooth_noise(frame.d.shape, 0.4 * base.half_width, rng), 0.1, 1.0)
    seam = cv2.GaussianBlur(seam * breaks * np.float32(0.85), (0, 0), blur)
    body = cv2.GaussianBlur(body, (0, 0), blur)
    fluid = protocol.fluid if protocol.sequence != "PD" else 0.9 * protocol.grey
    plain = _tumour_level(scene, protocol, frame.d.shape)
    drawn = moved + (np.float32(fluid) - moved) * seam
    drawn = drawn + (plain - drawn) * body
    cover = np.maximum(body, 0.7 * seam)
    if protocol.enhanced:
        drawn, tail = _with_tail(drawn, plain, frame, base, mm, blur)
        cover = np.maximum(cover, tail)
    target = cover > 0.02
    drawn = drawn + tissue_grain(brain, frame.window, np.asarray(target, np.bool_), rng, quiet=40.0) * cover
    pressed = cv2.GaussianBlur(np.abs(moved - frame.window.cut(brain.gray)), (0, 0), 5) > 2.5
    touched = (cover > 0.1) | (pressed & (frame.d > 0))
    return np.clip(drawn, 0, 255).astype(np.float32), np.asarray(touched & (frame.d > -3), np.bool_)


def _tumour_level(scene: Scene, protocol: Protocol, shape: tuple[int, int]) -> Field:
    """Grey levels of the tumour by sequence, with faint mottling."""
    strength = {"subtle": 0.0, "moderate": 0.5, "marked": 1.0}[scene.intent.conspicuity or "moderate"]
    grey, white, fluid = protocol.grey, protocol.white, protocol.fluid
    if protocol.enhanced:
        level = min(max(grey, white) * (1.45 + 0.5 * strength), 232.0)
    elif protocol.sequence == "T1":
        level = grey * (1.0 - 0.05 * strength) - 0.08 * strength * (grey - fluid)
    elif protocol.sequence == "T2":
        level = grey + (0.05 + 0.35 * strength) * (fluid - grey)
    elif protocol.sequence == "FLAIR":
        level = min(grey * (1.04 + 0.22 * strength), _BRIGHTEST)
    else:
        level = min(grey * (1.0 + 0.10 * strength), _BRIGHTEST)
    mottle = fractal_noise(shape, 5.0 / protocol.mm, scene.rng) * np.float32(0.022 * max(level, 20.0))
    tumour: Field = np.clip(level + mottle, 0, 255).astype(np.float32)
    return tumour


def _with_tail(
    drawn: Field, tumour: Field, frame: _Frame, base: _Base, mm: float, blur: float
) -> tuple[Field, Field]:
    """The enhancing dura that runs out from the base and thins, and how much it covers."""
    run = np.clip((1.8 * base.half_width - np.abs(frame.t)) / (0.9 * base.half_width), 0, 1)
    thick = np.float32(2.2 / mm) * run
    tail = ramp(frame.d, thick, 0.8 / mm) * ramp(-frame.d, 0.0, 2.0) * np.minimum(2.5 * run, 0.85)
    tail = cv2.GaussianBlur(tail.astype(np.float32), (0, 0), blur)
    return (drawn + (tumour - drawn) * tail).astype(np.float32), np.asarray(tail, np.float32)
