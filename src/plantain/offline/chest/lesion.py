"""Lung lesion: a roundish opacity through which ribs and vessels are still seen."""

from __future__ import annotations

import numpy as np

from plantain.offline.chest.blobs import Blob, find_blobs, lift_blob, near_hilum
from plantain.offline.chest.canvas import Canvas, add_opacity, blur, cloud, coordinates, open_canvas
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, erode

_DIAMETER_MM = ((8.0, 13.0), (17.0, 28.0), (34.0, 52.0))
_STRENGTH = (0.16, 0.36, 0.62)
_EDGE = (0.06, 0.13, 0.24)
_BESIDE = 0.2
"""Of the thorax's width from the spine: nearer, it is lost in hilum and heart, or looks like a wide mediastinum."""
ZONES = ("upper", "mid", "lower")


def zone_mask(canvas: Canvas, side: str, zone: str | None) -> Mask:
    """The part of a lung that a zone names: thirds of its height."""
    lung = canvas.chest.lung(side)
    if zone not in ZONES:
        return lung.mask
    third = (lung.bottom - lung.top) / 3
    start = lung.top + ZONES.index(zone) * third
    rows = np.arange(lung.mask.shape[0])[:, None]
    part: Mask = lung.mask & (rows >= start) & (rows < start + third)
    return part


def add(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    side, zone = canvas.side(), canvas.zone(ZONES)
    extent, conspicuity, softness = canvas.extent(), canvas.conspicuity(), canvas.softness()
    diameter = canvas.rng.uniform(*_DIAMETER_MM[extent])
    radius = diameter / 2 * canvas.pixels_per_mm
    room = zone_mask(canvas, side, zone) & erode(canvas.chest.lung(side).mask, 0.9 * radius + 6)
    room &= ~dilate(canvas.chest.protected, radius + 4)
    columns = np.arange(room.shape[1])[None]
    clear = room & (np.abs(columns - canvas.chest.midline) > _BESIDE * canvas.chest.thoracic_width)
    places = np.argwhere(clear if clear.any() else room)
    if len(places) == 0:
        raise CannotShow(f"no room for a lesion of {diameter:.0f} mm in the {side} {zone} zone")
    row, column = places[canvas.rng.integers(len(places))]
    body = _body(canvas, float(column), float(row), radius, _EDGE[softness], conspicuity)
    strength = _STRENGTH[conspicuity] * canvas.contrast(side)
    drawn = add_opacity(canvas.gray, strength * body)
    kind = "mass" if diameter > 30 else "nodule"
    note = f"{kind} of {diameter:.0f} mm{canvas.scale_words} in the {side} {zone} zone"
    return canvas.finish(drawn, body > 0.06, "local", note)


def _body(canvas: Canvas, x: float, y: float, radius: float, edge: float, conspicuity: int) -> Field:
    """Thickness of a lobed ball, 0..1, its edge blurred by `edge` radii."""
    rows, columns = coordinates(canvas.gray.shape)
    across, down = columns - x, rows - y
    angle = np.arctan2(down, across)
    ratio = canvas.rng.uniform(0.82, 1.0)
    tilt = canvas.rng.uniform(0, np.pi)
    u = across * np.cos(tilt) + down * np.sin(tilt)
    v = (down * np.cos(tilt) - across * np.sin(tilt)) / ratio
    reach = np.ones_like(angle)
    for wave in range(2, 7):
        reach += canvas.rng.normal(0, 0.055 / wave**0.5) * np.cos(wave * angle + canvas.rng.uniform(0, 6.28))
    inside = np.hypot(u, v) / (radius * reach)
    # Between a ball (thickest in the middle) and a flat disc, as real nodules look.
    thickness = np.clip(1 - inside**2.6, 0, None) ** 0.65
    body = blur(thickness.astype(np.float32), max(1.2, edge * radius))
    uneven = 1 + 0.05 * cloud(canvas.gray.shape, max(6.0, radius * 0.6), canvas.rng)
    return (body / max(float(body.max()), 1e-6) * uneven).astype(np.float32)


def remove(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    found = [blob for blob in find_blobs(canvas) if _asked(canvas, blob)]
    if not found and scene.intent.side in ("left", "right") and scene.intent.zone in ZONES:
        found = [blob for blob in find_blobs(canvas, place_given=True) if _asked(canvas, blob)][:1]
    if scene.intent.side not in ("left", "right") and scene.intent.zone not in ZONES:
        found = [blob for blob in found if blob.strength > _bar(canvas, blob)]
    if not found:
        raise CannotShow("no lung lesion found: nothing round stands out from the lung")
    # What is far weaker than the clearest lesion is as likely a vessel seen end-on.
    clearest = found[0].strength * found[0].radius
    found = [blob for blob in found if blob.strength * blob.radius > 0.3 * clearest][:8]
    drawn, mask = canvas.gray.copy(), np.zeros(canvas.gray.shape, bool)
    lifted = 0
    for blob in found:
        result = lift_blob(drawn, blob)
        if result is not None:
            drawn, part = result
            mask |= part
            lifted += 1
    if not lifted:
        raise CannotShow("no lung lesion found: what is round has no border of its own")
    sides = " and ".join(sorted({blob.side for blob in found}))
    return canvas.finish(
        drawn,
        mask,
        "local",
        f"{lifted} round opacities lifted from the {sides} lung; fainter ones may remain",
    )


def _bar(canvas: Canvas, blob: Blob) -> float:
    """How far a round shape must stand out where nobody says that there is a lesion: nipples and vessels do, too."""
    if blob.radius < 0.016 * canvas.chest.thoracic_width:
        return 0.27
    return 0.26 if near_hilum(canvas, blob) else 0.19


def _asked(canvas: Canvas, blob: Blob) -> bool:
    intent = canvas.scene.intent
    if intent.side in ("left", "right") and blob.side != intent.side:
        return False
    if intent.zone not in ZONES:
        return True
    near = dilate(zone_mask(canvas, blob.side, intent.zone), blob.radius)
    return bool(near[round(blob.y), round(blob.x)])


RENDERER = FindingRenderer(add, remove)
