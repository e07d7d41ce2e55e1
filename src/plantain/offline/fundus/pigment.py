"""Takes a myopic crescent away: finds the disc within what looks like one, and closes pigment over the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import cv2
import numpy as np

from plantain.offline.fundus.anatomy import FundusAnatomy, read_anatomy
from plantain.offline.fundus.crescent import polar
from plantain.offline.fundus.disc import Disc
from plantain.offline.fundus.restore import close_over, grow, vessel_free
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Mask, Pixels

ARC = np.linspace(-1.2, 1.2, 49, dtype=np.float32)
"""Directions along the temporal edge, 0 straight temporal, in radians."""

WEIGHTS = np.asarray((1.0, 0.5, 0.4), np.float32)
"""Of the rise of green over red, of green, and of blue over red, across the disc's own edge."""

LEAST_RISE = 0.016
"""What that rise must come to; across a healthy disc's edge and rim it is negative, round a cup positive."""

SHARES = np.arange(0.66, 0.97, 0.02)
"""Widths of the disc tried, as shares of what looks like the disc."""

FEWEST_SHARE = 0.08
"""Pale area beside the disc, as a share of the disc's, below which there is no crescent to take away."""

PALENESS = 0.45
"""A crescent is lighter than the retina by so much of what the disc's rim is."""

LEAST_BORDER = 0.014
"""Slope of green along the outer border of a crescent, as a share of green per pixel; a halo fades."""

GLOW, FADE = 0.35, 0.10
"""How much of the rim's light the retina shows where they meet, and over how many disc radii that fades."""


def remove_crescent(scene: Scene) -> Rendering:
    """Finds pale tissue along the disc's edge and closes even pigment over it; the disc keeps its shape."""
    seen = read_anatomy(scene.pixels, scene.image.laterality)
    anatomy, rise = own_disc(seen, scene.pixels)
    pale, share = pale_beside_disc(scene.pixels, anatomy, seen.disc if rise > LEAST_RISE else None)
    if share < FEWEST_SHARE or (rise <= LEAST_RISE and not _plain(scene.pixels, anatomy, pale)):
        raise CannotShow("no pale crescent found beside the disc")
    radius, _ = polar(anatomy, scene.pixels.shape[:2])
    spots = _with_pigment(scene.pixels, anatomy, pale) & (radius > 1.0)
    near_disc = np.asarray(radius < 1.1, dtype=bool)
    closed = close_over(scene.pixels, _bridged(anatomy), spots, scene.rng, deep=True, avoid=near_disc)
    pixels = _under_the_rim(scene.pixels, closed, radius)
    pixels = np.where((anatomy.aperture.depth > 3)[..., None], pixels, scene.pixels)
    note = f"pale crescent of {share:.2f} disc areas closed over, disc and vessels unchanged"
    return Rendering(pixels, grow(spots, 5), "local", note)


def own_disc(anatomy: FundusAnatomy, pixels: Pixels) -> tuple[FundusAnatomy, float]:
    """The anatomy with the disc's own outline, and how much paler the tissue turns across it.

    The edge found round a crescent makes the disc too wide on the temporal side. The nasal edge stands. Across the
    true temporal edge the tissue turns paler outwards, which inside a healthy disc it does nowhere.
    """
    disc = anatomy.disc
    half = round(0.9 * max(disc.width, disc.height))
    top, left = max(0, round(disc.y) - half), max(0, round(disc.x) - half)
    surface = vessel_free(pixels[top : round(disc.y) + half, left : round(disc.x) + half], 15) + 1
    red, green, blue = cv2.split(np.log(surface))
    planes = [np.ascontiguousarray(plane, np.float32) for plane in (green - red, green, blue - red)]
    best, most = disc, -1.0
    for tried in _narrower(disc, anatomy.temporal):
        rise = _rise(planes, replace(tried, x=tried.x - left, y=tried.y - top), anatomy.temporal)
        if rise > most:
            best, most = tried, rise
    if most > LEAST_RISE:
        return replace(anatomy, disc=best), most
    return anatomy, most


def _narrower(disc: Disc, temporal: int) -> Iterator[Disc]:
    for across in SHARES:
        for down in (0.76, 0.82, 0.88, 0.94, 1.0):
            width, height = float(across) * disc.width, down * disc.height
            if 0.72 < width / height < 1.1:
                x = disc.x - temporal * (disc.width - width) / 2
                for shift in (-0.05, 0.0, 0.05):
                    yield replace(disc, x=x, y=disc.y + shift * disc.height, width=width, height=height)


def _rise(planes: list[Field], disc: Disc, temporal: int) -> float:
    """How much paler it turns within a few pixels outward across the temporal edge of a disc, as log ratios."""
    values = []
    for step in (2.0, 4.0, 6.0, -2.0, -4.0, -6.0):
        scale = 1 + step / (0.5 * disc.diameter)
        x = (disc.x + temporal * np.cos(ARC) * disc.width / 2 * scale).astype(np.float32)[None]
        y = (disc.y + np.sin(ARC) * disc.height / 2 * scale).astype(np.float32)[None]
        values.append([cv2.remap(plane, x, y, cv2.INTER_LINEAR)[0] for plane in planes])
    rays = np.asarray(values)
    across = np.clip((rays[:3] - rays[3:]).mean(axis=0), -0.12, 0.12)
    return float((WEIGHTS @ across).mean())


def pale_beside_disc(pixels: Pixels, anatomy: FundusAnatomy, seen: Disc | None) -> tuple[Mask, float]:
    """bool (H, W), pale tissue that joins the disc's temporal half, and its area as a share of the disc's.

    Args:
        pixels: uint8 (H, W, 3).
        anatomy: with the disc's own outline.
        seen: what looks like the disc, where that is wider: what it holds more is pale tissue.
    """
    radius, turn = polar(anatomy, pixels.shape[:2])
    surface = vessel_free(pixels, 15)
    tone, light = surface[..., 1] / np.maximum(surface[..., 0], 8.0), surface[..., 1]
    field = anatomy.aperture.depth > 8
    around = (radius > 2.0) & (radius < 2.6) & (np.abs(turn) < 1.35) & field
    rim = (radius > 0.84) & (radius < 0.97) & field
    nothing = np.zeros(radius.shape, dtype=bool)
    if min(around.sum(), rim.sum()) < 200:
        return nothing, 0.0
    usual, usual_tone = float(np.median(light[around])), float(np.median(tone[around]))
    need = usual + PALENESS * max(float(np.median(light[rim])) - usual, 0.2 * usual)
    ring = (radius > 1.0) & (radius < 2.0) & (np.abs(turn) < 2.6) & field
    pale = ring & (light > need) & (tone > 1.03 * usual_tone)
    if seen is not None:
        pale |= ring & (seen.distance(radius.shape) < 1.03) & (np.abs(turn) < 2.0)
    joined = cv2.morphologyEx(
        (pale | (radius <= 1.03)).astype(np.uint8), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8)
    )
    _, labels = cv2.connectedComponents(joined, connectivity=4)
    own = labels[round(anatomy.disc.y), round(anatomy.disc.x)]
    found = np.asarray((labels == own) & pale, dtype=bool)
    area = np.pi / 4 * anatomy.disc.width * anatomy.disc.height
    return found, float((found & (radius > 1.06)).sum()) / area


def _plain(pixels: Pixels, anatomy: FundusAnatomy, pale: Mask) -> bool:
    """Whether pale tissue outside what looks like the disc ends at a border, as a crescent does and a halo does not."""
    outline = grow(pale, 3) & ~pale
    radius, _ = polar(anatomy, pixels.shape[:2])
    outline &= radius > 1.15
    green = cv2.GaussianBlur(vessel_free(pixels, 15)[..., 1], (0, 0), 1.5)
    slope = np.hypot(cv2.Sobel(green, cv2.CV_32F, 1, 0), cv2.Sobel(green, cv2.CV_32F, 0, 1)) / 8
    return bool(outline.any() and float(np.median((slope / np.maximum(green, 8.0))[outline])) > LEAST_BORDER)


def _with_pigment(pixels: Pixels, anatomy: FundusAnatomy, pale: Mask) -> Mask:
    """The crescent with its blurred border and the dark pigment that is heaped along it."""
    reach = 0.14 * anatomy.disc.diameter / 2
    calm = cv2.GaussianBlur(pixels[..., 1], (0, 0), 1.5).astype(np.float32)
    dark = (calm < 0.94 * anatomy.flat[..., 1]) & ~anatomy.vessels.mask
    return np.asarray(grow(pale, 5) | grow(grow(pale, 1.6 * reach) & dark, 3), dtype=bool)


def _bridged(anatomy: FundusAnatomy) -> FundusAnatomy:
    """The anatomy with its traced vessels drawn on straight over gaps as wide as a crescent's pigment."""
    disc, vessels = anatomy.disc, anatomy.vessels
    reach = round(1.2 * disc.diameter)
    top, left = max(0, round(disc.y) - reach), max(0, round(disc.x) - reach)
    box = np.s_[top : round(disc.y) + reach, left : round(disc.x) + reach]
    traced = vessels.mask[box].astype(np.uint8)
    gap = round(0.10 * disc.diameter)
    drawn = traced.copy()
    for turn in np.linspace(0, np.pi, 12, endpoint=False):
        line = np.zeros((2 * gap + 1, 2 * gap + 1), np.uint8)
        dx, dy = round(gap * float(np.cos(turn))), round(gap * float(np.sin(turn)))
        cv2.line(line, (gap - dx, gap - dy), (gap + dx, gap + dy), 1)
        drawn |= cv2.morphologyEx(traced, cv2.MORPH_CLOSE, line)
    wide = vessels.wide.copy()
    wide[box] |= grow(np.asarray(drawn > traced, dtype=bool), 2)
    return replace(anatomy, vessels=replace(vessels, wide=wide))


def _under_the_rim(before: Pixels, closed: Pixels, radius: Field) -> Pixels:
    """The closed pigment laid against the disc: the rim stands, and its light fades into the retina beside it."""
    rim = vessel_free(before, 15)
    inner = (radius > 0.84) & (radius < 0.96)
    light = np.median(rim[inner], axis=0) if inner.any() else rim.mean(axis=(0, 1))
    glow = GLOW * np.exp(-np.maximum(radius - 1, 0) / FADE)
    changed = np.asarray((closed != before).any(axis=2), dtype=np.float32)
    glow = (glow * cv2.GaussianBlur(changed, (0, 0), 2.0))[..., None]
    plain = np.maximum(closed, 1.0)
    lit = plain + glow * np.maximum(light - cv2.GaussianBlur(plain, (0, 0), 6.0), 0.0)
    step = np.clip((radius - 0.95) / 0.10, 0, 1)
    weight = (step * step * (3 - 2 * step))[..., None]
    mixed = before + weight * (lit - before)
    return np.asarray(np.rint(np.clip(mixed, 0, 255)), dtype=np.uint8)
