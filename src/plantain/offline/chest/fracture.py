"""Fracture: a dark line and a step in the cortices of one rib or clavicle, which bends there a little."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.chest.canvas import Canvas, blur, open_canvas
from plantain.offline.chest.ribs import ZONES, Bone, bone_frame, find_bones, fitted
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, feather

_STEP = (0.10, 0.20, 0.36)
"""Step of the cortex in parts of the bone's half width, by extent."""
_DARK = (0.06, 0.10, 0.16)
_WIDTH = (1.1, 1.4, 1.9)
_LEAST_DARK, _TIMES = 9.0, 2.2
"""Grey levels, and times the bone's own fine texture: a fainter line is lost in grain and trabeculae."""
LEAST_LINE = 0.055
"""How much darker than the bone on both sides a line across it must be, in parts of the contrast; crossing edges of
other ribs reach 0.05 on whole films."""
LEAST_LINE_TOLD = 0.04
"""The same where the instruction names the bone."""


def add(scene: Scene) -> Rendering:
    """Breaks one bone of the zone asked for.

    Raises:
        CannotShow: no bone with two clear cortices is seen there.
    """
    canvas = open_canvas(scene)
    side = canvas.side()
    zone = canvas.zone(ZONES)
    extent, conspicuity, softness = canvas.extent(), canvas.conspicuity(), canvas.softness()
    bone = _choose(canvas, side, zone)
    step = max(1.0, _STEP[extent] * bone.half) * float(canvas.rng.choice([-1.0, 1.0]))
    dark = max(_DARK[conspicuity] * canvas.contrast(side), _LEAST_DARK, _TIMES * _texture(canvas, bone))
    drawn, mask = _break(canvas, bone, step, dark, _WIDTH[softness])
    note = f"broken {zone}, {side}: cortical step of {abs(step):.1f} px with a dark line confined to the bone"
    return canvas.finish(drawn, mask, "local", note)


def _choose(canvas: Canvas, side: str, zone: str) -> Bone:
    bones = find_bones(canvas, side, zone)
    order = canvas.rng.permutation(len(bones))
    soft = blur(canvas.gray, 1.2)
    clear = [bone for index in order if (bone := fitted(soft, bones[index])) is not None]
    if not clear:
        raise CannotShow(f"no bone with two clear edges is seen in the {side} {zone} region")
    # Of a few at random the clearest: a break in a faint bone, or one drawn on a vessel, would not be seen as one.
    return max(clear[: max(4, len(clear) // 2)], key=lambda bone: bone.strength)


def _texture(canvas: Canvas, bone: Bone) -> float:
    """Fine texture around a piece of bone, in grey levels."""
    box, _, _ = bone_frame(canvas, bone, 4.0 * bone.half)
    part = canvas.gray[box]
    return 1.4826 * float(np.median(np.abs(part - blur(part, 4.0)))) + 1.0


def _break(canvas: Canvas, bone: Bone, step: float, dark: float, width: float) -> tuple[Field, Mask]:
    """Shifts the bone on one side of the break across its course, fading along it, and draws the gap."""
    length = 3.2 * bone.half
    box, along, across = bone_frame(canvas, bone, length + 1.6 * bone.half)
    slant = canvas.rng.uniform(-0.45, 0.45)
    jag = _jag(canvas.rng, across, bone.half)
    from_line = along - slant * across - jag
    inside = np.clip((1.22 * bone.half - np.abs(across)) / (0.22 * bone.half), 0, 1)
    fade = np.clip(1 - np.abs(from_line) / length, 0, 1) ** 1.5
    # Both ends give way, in opposite senses: a step at the line, a slight bend towards it.
    shift = (
        (step * 0.5)
        * np.sign(from_line)
        * fade
        * np.clip((1.5 * bone.half - np.abs(across)) / (0.5 * bone.half), 0, 1)
    )
    rows, columns = np.mgrid[box].astype(np.float32)
    x = columns + shift * bone.along_y
    y = rows - shift * bone.along_x
    moved = cv2.remap(canvas.gray, x.astype(np.float32), y.astype(np.float32), cv2.INTER_CUBIC)
    gap = np.exp(-0.5 * (from_line / width) ** 2) * inside
    # The two broken ends overlap a little: a faint denser margin beside the gap.
    margin = np.exp(-0.5 * ((np.abs(from_line) - 3.2 * width) / (1.4 * width)) ** 2) * inside
    drawn = canvas.gray.copy()
    drawn[box] = moved - dark * gap + 0.22 * dark * margin
    mask = np.zeros(canvas.gray.shape, bool)
    mask[box] = (np.abs(shift) > 0.15) | (gap > 0.05)
    return drawn, mask


def _jag(rng: np.random.Generator, across: Field, half: float) -> Field:
    """Small irregular bends of the break line, in pixels, by the place across the bone."""
    knots = np.linspace(-2 * half, 2 * half, 15)
    bends = rng.normal(0, 0.09 * half, 15)
    return np.interp(across, knots, bends).astype(np.float32)


def remove(scene: Scene) -> Rendering:
    """Joins the bone again where a dark line crosses it from cortex to cortex.

    Raises:
        CannotShow: no such line is found.
    """
    canvas = open_canvas(scene)
    sides = [side for side in ("right", "left") if scene.intent.side in (None, side)]
    zones = [zone for zone in ZONES if scene.intent.zone in (None, zone)]
    soft, fine = blur(canvas.gray, 1.2), blur(canvas.gray, 0.9)
    best, chosen, place = 0.0, None, ("", "")
    for side in sides:
        contrast = canvas.contrast(side)
        for zone in zones:
            for rough in find_bones(canvas, side, zone)[:40]:
                bone = fitted(soft, rough)
                if bone is None:
                    continue
                at, value = _line_across(fine, bone)
                value /= contrast
                if value > best:
                    moved = Bone(
                        bone.x + at * bone.along_x, bone.y + at * bone.along_y, bone.along_x, bone.along_y,
                        bone.half, value,
                    )  # fmt: skip
                    best, chosen, place = value, moved, (side, zone)
    if chosen is None or best < (LEAST_LINE_TOLD if len(zones) == 1 else LEAST_LINE):
        raise CannotShow("no fracture found: no dark line crosses a rib or clavicle from edge to edge")
    drawn, mask = _join(canvas, chosen)
    return canvas.finish(
        drawn, mask, "local", f"{place[1]} joined again, {place[0]}: both cortices run through"
    )


def _unrolled(fine: Field, bone: Bone, half_length: float, half_width: float) -> Field:
    """The bone as an upright strip: one row a pixel along it, one column a pixel across it."""
    along = np.arange(-half_length, half_length + 1)[:, None]
    across = np.arange(-half_width, half_width + 1)[None]
    x = bone.x + along * bone.along_x - across * bone.along_y
    y = bone.y + along * bone.along_y + across * bone.along_x
    strip: Field = cv2.remap(
        fine, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return strip


def _line_across(fine: Field, bone: Bone) -> tuple[float, float]:
    """(where along the bone, how dark): the darkest line across it that ends at its cortices."""
    reach, wide = 22, int(1.9 * bone.half)
    strip = _unrolled(fine, bone, reach + 8, wide)
    best = (0.0, 0.0)
    across = np.arange(-wide, wide + 1)
    bony = np.abs(across) < 0.85 * bone.half
    beside = np.abs(across) > 1.35 * bone.half
    for slant in (-0.4, -0.2, 0.0, 0.2, 0.4):
        rows = np.arange(len(strip))[:, None] + np.round(slant * across)[None].astype(int)
        lean = strip[rows % len(strip), np.arange(len(across))[None]]
        valley = np.minimum(lean[:-10], lean[10:]) - lean[5:-5]
        # Most of the width must take part, and lung beside the bone must not.
        inner = np.percentile(valley[:, bony], 30, axis=1)
        outer = np.maximum(np.median(valley[:, beside], axis=1), 0) if beside.any() else 0.0
        score = inner - outer
        middle = score[8:-8]
        index = int(middle.argmax())
        if middle[index] > best[1]:
            best = (float(index + 8 + 5 - (reach + 8)), float(middle[index]))
    return best


def _join(canvas: Canvas, bone: Bone) -> tuple[Field, Mask]:
    """Fills the break by what lies before and behind it along the bone, with the bone's own grain."""
    gap = max(7.0, 0.45 * bone.half)
    box, along, across = bone_frame(canvas, bone, gap + 2.2 * bone.half)
    rows, columns = np.mgrid[box].astype(np.float32)
    soft = blur(canvas.gray, 1.0)

    def beside(sign: float) -> Field:
        move = sign * gap - along
        x, y = columns + move * bone.along_x, rows + move * bone.along_y
        seen: Field = cv2.remap(soft, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR)
        return seen

    share = np.clip(0.5 + along / (2 * gap), 0, 1)
    bridged = (1 - share) * beside(-1.0) + share * beside(1.0)
    inside = (np.abs(along) < gap - 1) & (np.abs(across) < 1.35 * bone.half)
    grain = canvas.gray - soft
    alpha = feather(inside, 2.5)
    drawn = canvas.gray.copy()
    drawn[box] = canvas.gray[box] + alpha * (bridged + grain[box] - canvas.gray[box])
    mask = np.zeros(canvas.gray.shape, bool)
    mask[box] = inside
    return drawn, dilate(mask, 2)


RENDERER = FindingRenderer(add, remove)
