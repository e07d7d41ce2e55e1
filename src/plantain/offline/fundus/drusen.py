"""Age-related macular degeneration as drawn here: soft drusen under the vessels, pigment clumps when marked."""

from __future__ import annotations

import numpy as np

from plantain.offline.fundus.anatomy import FundusAnatomy, read_anatomy, require_macula
from plantain.offline.fundus.levels import Levels, choose_levels
from plantain.offline.fundus.paint import Spot, deposit, finish, mottle, stamp
from plantain.offline.fundus.places import FundusPlace, macular_place
from plantain.offline.rendering import Rendering, Scene
from plantain.pixels.arrays import Field

COUNTS = (16, 45, 95)
REACH = (0.55, 0.9, 1.3)
CONTRAST = (0.13, 0.26, 0.42)
EDGE = (0.35, 0.6, 0.95)
YELLOW_WHITE = (1.0, 0.86, 0.56)
SMALL_UM, LARGE_UM = 63.0, 125.0
"""AREDS size classes, by diameter."""


def add_drusen(scene: Scene) -> Rendering:
    """Draws drusen of mixed size, clustered within two disc diameters of the fovea, some merging."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    require_macula(anatomy)
    levels = choose_levels(scene.intent, scene.rng)
    place = macular_place(anatomy, scene.intent.zone, scene.intent.variant)
    layer, large, count = _drusen_layer(scene, anatomy, place, levels)
    texture = 1 + 0.12 * mottle(layer.shape, 4.0, scene.rng)
    change = deposit(
        scene.pixels,
        anatomy,
        np.clip(layer * texture, 0, 1).astype(np.float32),
        tone=YELLOW_WHITE,
        contrast=CONTRAST[levels.conspicuity],
        under_vessels=True,
    )
    seen = layer
    if levels.extent == 2 and levels.conspicuity == 2:
        clumps = _pigment_layer(scene, anatomy, place)
        change -= clumps[..., None] * anatomy.flat * np.asarray((0.22, 0.30, 0.25), np.float32)
        seen = np.maximum(layer, clumps)
    pixels, mask = finish(scene.pixels, change, seen)
    return Rendering(
        pixels,
        mask,
        "local",
        f"{count} soft drusen ({large} of them 125 um or more) in the {place.name}, {levels.words()}, "
        f"{anatomy.eye} eye",
    )


def _drusen_layer(
    scene: Scene, anatomy: FundusAnatomy, place: FundusPlace, levels: Levels
) -> tuple[Field, int, int]:
    rng = scene.rng
    diameter = anatomy.disc.diameter
    layer = np.zeros(scene.pixels.shape[:2], np.float32)
    reach = REACH[levels.extent] * diameter * (place.spread / (0.5 * diameter)) ** 0.5
    nests = [_near(place.x, place.y, reach * 0.6, rng) for _ in range(3 + 2 * levels.extent)]
    disc = anatomy.disc.distance(layer.shape)
    wanted = round(COUNTS[levels.extent] * rng.uniform(0.85, 1.15))
    median_um = (62.0, 85.0, 100.0)[levels.extent]
    drawn = large = 0
    for _ in range(4 * wanted):
        if drawn == wanted:
            break
        if rng.random() < 0.6:
            x, y = _near(*nests[int(rng.integers(len(nests)))], 0.16 * diameter + 0.1 * reach, rng)
        else:
            x, y = _near(place.x, place.y, reach * 0.75, rng)
        size_um = float(np.clip(median_um * np.exp(rng.normal(0, 0.5)), 30.0, 290.0))
        away = np.hypot(x - anatomy.fovea[0], y - anatomy.fovea[1])
        if away > 1.9 * diameter or not _allowed(anatomy, disc, x, y):
            continue
        radius = 0.5 * size_um * anatomy.px_per_um
        opacity = float(rng.uniform(0.5, 1.0) * np.clip(0.55 + size_um / 250, 0.6, 1.0))
        stretch = float(rng.uniform(1.0, 1.35))
        edge = max(EDGE[levels.softness] * radius, 1.5)
        stamp(layer, Spot(x, y, radius, edge, 0.3, stretch, float(rng.uniform(0, np.pi)), opacity), rng)
        drawn += 1
        large += size_um >= LARGE_UM
    return layer, large, drawn


def _pigment_layer(scene: Scene, anatomy: FundusAnatomy, place: FundusPlace) -> Field:
    """A few small dark clumps among the drusen, as the pigment epithelium makes over them."""
    rng = scene.rng
    layer = np.zeros(scene.pixels.shape[:2], np.float32)
    for _ in range(int(rng.integers(3, 7))):
        x, y = _near(*anatomy.fovea, 0.45 * anatomy.disc.diameter, rng)
        for _ in range(int(rng.integers(2, 5))):
            radius = float(rng.uniform(14, 34)) * anatomy.px_per_um
            spot = Spot(
                *_near(x, y, 2.2 * radius, rng), radius, 0.7 * radius + 0.6, 0.45, float(rng.uniform(1, 1.8))
            )
            stamp(layer, spot, rng)
    return layer


def _near(x: float, y: float, spread: float, rng: np.random.Generator) -> tuple[float, float]:
    dx, dy = rng.normal(0.0, spread, 2)
    return x + float(dx), y + float(dy)


def _allowed(anatomy: FundusAnatomy, disc: Field, x: float, y: float) -> bool:
    column, row = round(x), round(y)
    if not (0 <= row < disc.shape[0] and 0 <= column < disc.shape[1]):
        return False
    return bool(anatomy.aperture.depth[row, column] > 20 and disc[row, column] > 1.25)
