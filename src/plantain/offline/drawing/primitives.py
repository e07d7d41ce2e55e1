"""The drawing primitives: each takes a sketch and returns the image with one step of a finding drawn on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import cv2
import numpy as np

from plantain.offline.anatomy.maps import CannotShow, blur, enlarged, signed_distance
from plantain.offline.drawing.sketch import Point, Sketch, lobed, paint, ramp, texture
from plantain.pixels.arrays import Field, Mask

Drawn = tuple[Field, Point]
"""The image after a step, float32 (H, W, 3), and where the step was placed."""


def opacity(sketch: Sketch) -> Drawn:
    """Draw soft, mottled patches around one point, within the organ."""
    radius = sketch.size
    x, y = sketch.anchor or sketch.spot(0.6 * radius)
    hill = np.zeros(sketch.shape, np.float32)
    for number in range(4):
        way, angle = (
            (0.0 if number == 0 else sketch.rng.uniform(0.4, 0.8) * radius),
            sketch.rng.uniform(0, 2 * np.pi),
        )
        centre = (x + way * math.cos(angle), y + way * math.sin(angle))
        hill = np.maximum(hill, lobed(sketch, centre, radius * float(sketch.rng.uniform(0.6, 1.0)), edge=1.6))
    # Noise moves the outline in and out, so that the border is ragged and fades at different speeds.
    ragged = 0.16 * texture(sketch, 0.35 * radius) + 0.1 * texture(sketch, 0.12 * radius)
    alpha = ramp((hill - 0.1 + ragged * ramp(hill * 2.5)) / np.float32(0.9))
    alpha = blur(alpha, 0.07 * radius) * sketch.inside(0.05 * sketch.yard)
    return paint(sketch, alpha, hides=0.4, reach=0.03 * sketch.yard), (x, y)


def mass(sketch: Sketch) -> Drawn:
    """Draw one rounded lesion with its own outline; on the organ's border it has a broad base."""
    radius = sketch.size
    # Of one hemisphere the falx is a border as well.
    half = sketch.anatomy.organ & sketch.anatomy.side(sketch.side)
    depth = enlarged(signed_distance(half), sketch.shape) * np.float32(sketch.scale)
    centre = sketch.anchor or (
        _on_border(sketch, depth) if sketch.stroke.based else sketch.spot(1.1 * radius)
    )
    alpha = lobed(
        sketch, centre, radius, edge=0.3, oval=sketch.stroke.oval or float(sketch.rng.uniform(1.0, 1.35)),
        turn=np.pi / 2 if sketch.stroke.oval else float(sketch.rng.uniform(0, np.pi)),
    )  # fmt: skip
    uneven = np.clip(
        1 + 0.13 * texture(sketch, 0.5 * radius) + 0.07 * texture(sketch, 0.15 * radius), 0.5, 1.4
    )
    alpha, within = alpha * uneven, _up_to_border(sketch, depth) if sketch.stroke.based else None
    return paint(sketch, alpha, hides=sketch.stroke.hides, reach=max(0.8 * radius, 6), within=within), centre


def band(sketch: Sketch) -> Drawn:
    """Draw a slightly bent, nearly horizontal band across the organ."""
    length = sketch.size
    x, y = sketch.anchor or sketch.spot(0.06 * sketch.yard)
    thickness = float(sketch.rng.uniform(0.008, 0.011)) * sketch.yard * (1 + sketch.extent)
    turn, bend = float(sketch.rng.normal(0, 0.14)), float(sketch.rng.normal(0, 0.25)) / length
    ys, xs = np.mgrid[: sketch.shape[0], : sketch.shape[1]].astype(np.float32)
    along = (xs - x) * math.cos(turn) + (ys - y) * math.sin(turn)
    across = -(xs - x) * math.sin(turn) + (ys - y) * math.cos(turn) - bend * along**2
    wide = thickness * (1 - 0.35 * np.clip(np.abs(along) / length * 2, 0, 1))
    alpha = ramp((wide - np.abs(across)) / np.float32(10) + 0.5) * ramp(
        (0.55 * length - np.abs(along)) / (0.3 * length)
    )
    alpha = alpha * np.clip(1 + 0.15 * texture(sketch, 0.12 * length), 0.5, 1.3)
    return paint(sketch, alpha * sketch.inside(0.02 * sketch.yard), hides=0.3), (x, y)


def line(sketch: Sketch) -> Drawn:
    """Draw a break across the strongest bright ridge (a rib): a dark gap with one displaced end.

    Raises:
        CannotShow: no ridge was found.
    """
    level = np.ascontiguousarray(sketch.image[..., -1])
    turn, strength = _ridges(blur(level, 0.008 * sketch.yard), 0.02 * sketch.yard)
    allowed = enlarged(sketch.where, sketch.shape) > 0.5
    worth = np.where(allowed, strength, 0)
    if not worth.max() > 0:
        raise CannotShow("no rib was found there")
    ys, xs = np.nonzero(worth > 0.7 * np.percentile(worth[allowed], 99.5))
    pick = int(sketch.placing.integers(ys.size))
    x, y = sketch.anchor or (float(xs[pick]), float(ys[pick]))
    angle = float(turn[int(y), int(x)])
    rows, columns = np.mgrid[: sketch.shape[0], : sketch.shape[1]].astype(np.float32)
    along = (columns - x) * math.cos(angle) + (rows - y) * math.sin(angle)
    across = -(columns - x) * math.sin(angle) + (rows - y) * math.cos(angle)
    half = sketch.size / 2
    near = ramp((half - np.abs(across)) / (0.35 * half))
    # One end of the bone is moved across its axis; the move fades out along the bone.
    moved = (
        near
        * ramp(along / 3 + 0.5)
        * np.exp(-np.clip(along, 0, None) / (1.2 * half))
        * np.float32(0.28 * half)
    )
    dx, dy = moved * math.sin(angle), -moved * math.cos(angle)
    stepped = _warped(sketch.image, columns + dx, rows + dy)
    slanted = along + 0.25 * across + 1.0 * np.sin(across / max(half / 4, 1))
    alpha = near * ramp(np.float32(1.4) - np.abs(slanted) / np.float32(2.0))
    image = paint(sketch, alpha) - sketch.image + stepped
    return np.asarray(image, np.float32), (x, y)


def spots(sketch: Sketch) -> Drawn:
    """Draw small spots of different sizes around one point; elongated ones follow the nerve fibres off the disc.

    Raises:
        CannotShow: fewer than three fit.
    """
    stroke, rng = sketch.stroke, sketch.rng
    x, y = sketch.anchor or sketch.spot(0.35 * sketch.yard)
    allowed = enlarged(sketch.where, sketch.shape) > 0.5
    alpha = np.zeros(sketch.shape, np.float32)
    disc = sketch.anatomy.points.get("disc", (0.0, 0.0))
    small, large = (size * sketch.yard for size in stroke.size)
    drawn = 0
    for _ in range(30 * stroke.count):
        if drawn >= round(stroke.count * (0.7 + 0.6 * sketch.extent)):
            break
        at = (x + rng.normal(0, stroke.spread * sketch.yard), y + rng.normal(0, stroke.spread * sketch.yard))
        row, column = int(at[1]), int(at[0])
        if not (0 <= row < allowed.shape[0] and 0 <= column < allowed.shape[1] and allowed[row, column]):
            continue
        radius = small + (large - small) * float(rng.beta(1.2, 2.2)) * (0.7 + 0.3 * sketch.extent)
        away = np.arctan2(at[1] - disc[1] * sketch.scale, at[0] - disc[0] * sketch.scale)
        spot = lobed(
            sketch, at, radius, edge=0.8, oval=stroke.oval or float(rng.uniform(1, 1.5)), turn=float(away)
        )
        alpha = np.maximum(alpha, np.float32(rng.uniform(0.75, 1.0)) * spot)
        drawn += 1
    if drawn < 3:
        raise CannotShow("no space for it in this image")
    return paint(sketch, alpha, hides=stroke.hides, reach=max(large, 4)), (x, y)


def crescent(sketch: Sketch) -> Drawn:
    """Draw a crescent along one border of a structure: the structure minus its shifted copy."""
    alpha, _, at = _crescent(sketch)
    alpha = alpha * np.clip(1 + 0.06 * texture(sketch, 0.1 * sketch.yard), 0.7, 1.2)
    if sketch.anatomy.midline is None:
        return paint(sketch, alpha, hides=sketch.stroke.hides, reach=0.08 * sketch.yard), at
    # Fluid and pleura are as bright as the soft tissue around the lungs, and no brighter.
    smooth = blur(sketch.image, 0.02 * sketch.yard)
    tissue = float(np.percentile(smooth[sketch.rim()], 55))
    fill = np.clip(np.float32(tissue) - smooth, 0, sketch.level())
    grain = sketch.image - blur(sketch.image, 1.2)
    flat = smooth + fill + grain
    covered = alpha[..., None] * np.float32(sketch.stroke.hides)
    return np.asarray(
        sketch.image + (alpha[..., None] - covered) * fill + covered * (flat - sketch.image), np.float32
    ), at


def darkening(sketch: Sketch) -> Drawn:
    """Draw a crescent of air along a border, with a thin bright line and no markings beyond it."""
    alpha, behind, at = _crescent(sketch)
    image = paint(sketch, alpha, hides=0.75, reach=0.02 * sketch.yard)
    line = np.exp(-((behind / np.float32(1.7)) ** 2)) * sketch.inside(8)
    return np.asarray(image + (np.float32(16 * sketch.strength) * line)[..., None], np.float32), at


def border(sketch: Sketch) -> Drawn:
    """Move the border of a midline structure outwards (inwards for a negative size), more on the patient's left."""
    ys, xs = np.nonzero(sketch.where)
    top, bottom = float(ys.min()) * sketch.scale, float(ys.max()) * sketch.scale
    middle = (sketch.anatomy.midline or float(xs.mean())) * sketch.scale
    rows, columns = np.mgrid[: sketch.shape[0], : sketch.shape[1]].astype(np.float32)
    high = np.clip((rows - top) / (bottom - top), 0, 1)
    reach = np.float32(0.46 * sketch.yard if sketch.stroke.oval == 0 else sketch.stroke.oval * sketch.yard)
    off = (columns - np.float32(middle)) / reach
    share = np.clip(np.abs(off), 0, 1)
    bulge = 16 * share**2 * (1 - share) ** 2 * np.sin(np.pi * high) ** 2
    larger = np.where(off > 0, np.float32(1.0), np.float32(0.55 + 0.1 * sketch.rng.random()))
    move = np.sign(off) * bulge * larger * np.float32(sketch.size)
    warped = _warped(sketch.image, columns - move, rows)
    # Resampling reduces grain where pixels move; it is restored from the original.
    lost = (sketch.image - blur(sketch.image, 0.8)) - (warped - blur(warped, 0.8))
    moved = ramp(np.abs(move) / 2)[..., None]
    return np.asarray(warped + moved * lost, np.float32), (middle, (top + bottom) / 2)


def haze(sketch: Sketch) -> Drawn:
    """Draw a veil over the whole field: less contrast, less sharpness, and a tint."""
    depth = enlarged(signed_distance(sketch.anatomy.field), sketch.shape) * np.float32(sketch.scale)
    field = ramp((depth - 4) / np.float32(14))
    share = np.float32(
        sketch.stroke.size[0] + sketch.extent * (sketch.stroke.size[1] - sketch.stroke.size[0])
    )
    uneven = np.clip(share * sketch.strength * (1 + 0.12 * texture(sketch, 3 * sketch.yard)), 0, 0.8) * field
    soft = blur(sketch.image, 2.0 + 5 * float(share))
    wide = blur(sketch.image, 0.9 * sketch.yard) + sketch.level() / np.float32(max(sketch.strength, 0.1))
    grain = sketch.image - blur(sketch.image, 1.0)
    veiled = soft + uneven[..., None] * (wide - soft) + grain
    image = sketch.image + field[..., None] * (veiled - sketch.image)
    return np.asarray(image, np.float32), (sketch.shape[1] / 2, sketch.shape[0] / 2)


PRIMITIVES: Mapping[str, Callable[[Sketch], Drawn]] = {
    "opacity": opacity,
    "mass": mass,
    "band": band,
    "line": line,
    "spots": spots,
    "crescent": crescent,
    "darkening": darkening,
    "border": border,
    "haze": haze,
}


def _warped(plane: Field, columns: Field, rows: Field) -> Field:
    """Each pixel taken from (column, row) of the plane or image; beyond the border its edge is repeated."""
    x, y = columns.astype(np.float32), rows.astype(np.float32)
    out = cv2.remap(plane, x, y, cv2.INTER_LANCZOS4, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(out, np.float32).reshape(plane.shape)


def _up_to_border(sketch: Sketch, depth: Field) -> Mask:
    """The organ on this side, bool (H, W); near the border of the map, which is coarser, only where it is bright."""
    level = sketch.image[..., -1]
    side = enlarged(sketch.anatomy.side(sketch.side), sketch.shape) > 0.5
    bright = level > np.float32(0.4) * np.median(level[depth > 6])
    return np.asarray((depth > 6) | ((depth > -8) & side & bright), bool)


def _on_border(sketch: Sketch, depth: Field) -> Point:
    """A random point of `where` that is a third of the size inside the organ's border."""
    near = enlarged(sketch.where, sketch.shape) > 0.5
    first, allowed = (
        near & (np.abs(depth - 0.35 * share * sketch.size) < 3) for share in (sketch.middle, 1.0)
    )
    if not (first.any() and allowed.any()):
        raise CannotShow("no border for it in this image")
    return sketch.chosen(first, allowed)


def _crescent(sketch: Sketch) -> tuple[Field, Field, Point]:
    """Alpha, the signed distance beyond the moved border in pixels, and the middle of the crescent.

    Of a negative size the copy moves outwards, and the crescent is its part outside the structure.
    """
    depth = enlarged(signed_distance(sketch.where), sketch.shape) * np.float32(sketch.scale)
    lateral = 1.0 if sketch.side == "left" else -1.0  # the patient's left is on the image's right
    if "temporal" in sketch.anatomy.points:
        lateral = sketch.anatomy.points["temporal"][0]
    across, down = sketch.stroke.towards[0] * lateral, sketch.stroke.towards[1]
    norm = math.hypot(across, down)
    rows, columns = np.mgrid[: sketch.shape[0], : sketch.shape[1]].astype(np.float32)
    ahead = columns * (across / norm) + rows * (down / norm)
    near, far = (float(end) for end in np.percentile(ahead[depth > 0], (2, 98)))
    # The copy moves less the further it is from the border, so that the crescent tapers off.
    way = abs(sketch.size) * ramp((ahead - near) / (0.8 * (far - near)))
    sign = 1 if sketch.size > 0 else -1
    soft = np.float32(sketch.stroke.soft)
    if sketch.stroke.meniscus:
        moved = _meniscus(depth, columns, rows, lateral, sketch.size)
    else:
        moved = _warped(depth, columns + sign * way * (across / norm), rows + sign * way * (down / norm))
    alpha = ramp(sign * depth / np.float32(11) + 0.5) * ramp(-sign * moved / soft + 0.5)
    if not sketch.stroke.meniscus:
        alpha = alpha * ramp(way / soft)
    if not (alpha > 0.5).any():
        raise CannotShow("no space for it in this image")
    ys, xs = np.nonzero(alpha > 0.5)
    return np.asarray(alpha, np.float32), np.asarray(moved, np.float32), (float(xs.mean()), float(ys.mean()))


def _meniscus(depth: Field, columns: Field, rows: Field, lateral: float, size: float) -> Field:
    """Height above the surface of free fluid in pixels: concave, a little higher medially, highest at the side."""
    inside = depth > 0
    low, high = (float(end) for end in np.percentile(columns[inside], (2, 98)))
    out = np.clip((columns - low) / (high - low), 0, 1)
    out = out if lateral > 0 else 1 - out
    surface = np.percentile(rows[inside], 98) - size * (0.65 + 0.25 * (1 - out) ** 3 + 1.1 * out**3)
    return np.asarray(surface - rows, np.float32)


def _ridges(level: Field, sigma: float) -> tuple[Field, Field]:
    """Direction along the bright ridge at each pixel, in radians, and the ridge's strength."""
    smooth = blur(level, sigma)
    xx, yy, xy = (cv2.Sobel(smooth, cv2.CV_32F, i, j, ksize=5) for i, j in ((2, 0), (0, 2), (1, 1)))
    root = np.sqrt((xx - yy) ** 2 + 4 * xy**2)
    across = 0.5 * (xx + yy - root)
    direction = 0.5 * np.arctan2(2 * xy, xx - yy)
    return np.asarray(direction, np.float32), np.asarray(
        np.clip(-across - 0.5 * np.abs(across + root), 0, None), np.float32
    )
