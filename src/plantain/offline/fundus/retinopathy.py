"""Diabetic retinopathy as drawn here: microaneurysms, dot and blot haemorrhages, and exudates in clusters or rings."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from plantain.offline.fundus.anatomy import FundusAnatomy, read_anatomy
from plantain.offline.fundus.levels import Levels, choose_levels
from plantain.offline.fundus.paint import Spot, blood, blood_tone, deposit, finish, mottle, stamp
from plantain.offline.fundus.places import FundusPlace, polar_place, scatter
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field

MICROANEURYSMS = (10, 22, 40)
HAEMORRHAGES = (3, 9, 18)
EXUDATE_CLUSTERS = (0, 2, 4)
BLOOD = (0.55, 1.0, 1.45)
WAX = (0.22, 0.40, 0.62)
EDGE = (0.25, 0.4, 0.7)
WAX_YELLOW = (1.0, 0.90, 0.50)


def add_retinopathy(scene: Scene) -> Rendering:
    """Draws red lesions at the posterior pole and, from moderate extent on, hard exudates among them.

    Exudates never come without red lesions. Blood lies over the deposits; both keep clear of the disc.
    """
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    levels = choose_levels(scene.intent, scene.rng)
    place = polar_place(anatomy, scene.intent.zone, scene.intent.variant)
    disc = anatomy.disc.distance(scene.pixels.shape[:2])
    reds, micro, blots = _red_layer(scene, anatomy, place, levels, disc)
    if micro + blots == 0:
        raise CannotShow(f"the {place.name} lies outside the photographed field")
    wax, clusters = _exudate_layer(scene, anatomy, place, levels, disc)
    # Wax is uneven, and no sharper than the photograph.
    uneven = np.clip(1 + 0.18 * mottle(wax.shape, 3.0, scene.rng), 0, 1.2).astype(np.float32)
    wax = cv2.GaussianBlur(np.minimum(wax * uneven, 1), (0, 0), 0.9)
    change = deposit(
        scene.pixels,
        anatomy,
        wax,
        tone=WAX_YELLOW,
        contrast=WAX[levels.conspicuity],
        under_vessels=True,
    )
    tone = blood_tone(scene.pixels, anatomy)
    change += blood(scene.pixels, reds, tone, BLOOD[levels.conspicuity])
    pixels, mask = finish(scene.pixels, change, np.maximum(reds, wax))
    note = (
        f"{micro} microaneurysms, {blots} dot and blot haemorrhages, {clusters} exudate clusters at the "
        f"{place.name}, {levels.words()}, {anatomy.eye} eye"
    )
    return Rendering(pixels, mask, "local", note)


def _red_layer(
    scene: Scene, anatomy: FundusAnatomy, place: FundusPlace, levels: Levels, disc: Field
) -> tuple[Field, int, int]:
    rng, scale = scene.rng, anatomy.px_per_um
    layer = np.zeros(scene.pixels.shape[:2], np.float32)
    drawn = [0, 0]
    quiet = 0.28 * anatomy.disc.diameter
    limit = (4.5 if "periphery" in place.name else 3.2) * anatomy.disc.diameter
    for kind, wanted in enumerate((MICROANEURYSMS[levels.extent], HAEMORRHAGES[levels.extent])):
        for _ in range(6 * wanted):
            if drawn[kind] == wanted:
                break
            x, y = scatter(place, rng)
            away = float(np.hypot(x - anatomy.fovea[0], y - anatomy.fovea[1]))
            if not _free(anatomy, disc, x, y, on_vessels=False) or not quiet < away < limit:
                continue
            if kind == 0:
                size_um, ragged, stretch = float(rng.uniform(30, 75)), 0.1, 1.0
            else:
                size_um = float(np.clip(130 * np.exp(rng.normal(0, 0.45)), 70, 380))
                ragged, stretch = 0.35, float(rng.uniform(1.0, 1.5))
            radius = max(0.5 * size_um * scale, 1.3)
            edge = max(EDGE[levels.softness] * radius, 1.0)
            opacity = float(rng.uniform(0.6, 1.0))
            stamp(
                layer, Spot(x, y, radius, edge, ragged, stretch, float(rng.uniform(0, np.pi)), opacity), rng
            )
            drawn[kind] += 1
    return layer, drawn[0], drawn[1]


def _exudate_layer(
    scene: Scene, anatomy: FundusAnatomy, place: FundusPlace, levels: Levels, disc: Field
) -> tuple[Field, int]:
    """Clusters of small waxy spots; every other cluster is an incomplete ring, as round a leaking vessel."""
    rng, scale = scene.rng, anatomy.px_per_um
    diameter = anatomy.disc.diameter
    layer = np.zeros(scene.pixels.shape[:2], np.float32)
    clusters = 0
    for _ in range(8 * EXUDATE_CLUSTERS[levels.extent]):
        if clusters == EXUDATE_CLUSTERS[levels.extent]:
            break
        x, y = scatter(replace(place, spread=0.75 * place.spread), rng)
        away = float(np.hypot(x - anatomy.fovea[0], y - anatomy.fovea[1]))
        if not _free(anatomy, disc, x, y, on_vessels=True) or not 0.3 < away / diameter < 2.4:
            continue
        ring, start = clusters % 2 == 1, float(rng.uniform(0, 2 * np.pi))
        for _ in range(int(rng.integers(8, 20))):
            if ring:
                turn = start + float(rng.uniform(0, 4.6))
                reach = 0.26 * diameter * float(rng.normal(1.0, 0.1))
            else:
                turn, reach = float(rng.uniform(0, 2 * np.pi)), abs(float(rng.normal(0, 0.15 * diameter)))
            sx, sy = x + reach * np.cos(turn), y + reach * np.sin(turn)
            if not _free(anatomy, disc, sx, sy, on_vessels=True):
                continue
            radius = max(0.5 * float(np.clip(75 * np.exp(rng.normal(0, 0.45)), 35, 190)) * scale, 1.2)
            edge = max(0.6 * EDGE[levels.softness] * radius, 0.8)
            shape = (0.35, float(rng.uniform(1.0, 1.7)), float(rng.uniform(0, np.pi)))
            stamp(layer, Spot(sx, sy, radius, edge, *shape, float(rng.uniform(0.5, 1.0))), rng)
        clusters += 1
    return layer, clusters


def _free(anatomy: FundusAnatomy, disc: Field, x: float, y: float, *, on_vessels: bool) -> bool:
    """Inside the field, clear of the disc and, unless allowed, not on a traced vessel."""
    column, row = round(x), round(y)
    if not (0 <= row < disc.shape[0] and 0 <= column < disc.shape[1]):
        return False
    inside = bool(anatomy.aperture.depth[row, column] > 24 and disc[row, column] > 1.4)
    return inside and (on_vessels or not bool(anatomy.vessels.mask[row, column]))
