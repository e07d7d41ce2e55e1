"""Clean edits for an audit: what the procedural renderers draw, and its exact undoing; no judge is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

import cv2
import numpy as np

from plantain.audit.pictures import TrialPicture
from plantain.audit.planted_defects import CleanEdit
from plantain.findings import Taxonomy, sides_on, why_not_shown, zones_on
from plantain.offline.editor import PACKAGES
from plantain.offline.language import Intent, compose, read_instruction
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import BUILD_DIRECTIONS, Direction, Finding, derive_seed


@dataclass(frozen=True, slots=True, eq=False)
class CleanEditRecipe:
    """How one clean edit is made; rendering it twice gives the same bytes.

    Attributes:
        picture: the real picture.
        finding, direction: what to do.
        seed: of the wish (side, zone, extent) and of the rendering.
        name: for people.
    """

    picture: TrialPicture
    finding: Finding
    direction: Direction
    seed: int
    name: str


def recipes(
    pictures: Sequence[TrialPicture], taxonomy: Taxonomy, seed: int, findings: Sequence[str] = ()
) -> Iterator[CleanEditRecipe]:
    """Endless recipes in turns: every modality as often, within it every finding and direction, then every picture.

    Args:
        pictures: real pictures.
        taxonomy: where findings come from.
        seed: of everything that is drawn by lot.
        findings: names to keep to; empty for all that a renderer can draw.
    """
    by_modality: dict[str, list[TrialPicture]] = {}
    for picture in pictures:
        by_modality.setdefault(picture.image.modality, []).append(picture)
    turn = 0
    while True:
        dealt = False
        for modality, own in by_modality.items():
            renderable = {name for name in renderers(modality) if not findings or name in findings}
            targets = [
                (finding, direction)
                for finding in taxonomy.of(modality)
                if finding.name in renderable
                for direction in BUILD_DIRECTIONS
            ]
            if not targets:
                continue
            dealt = True
            finding, direction = targets[turn % len(targets)]
            picture = own[(turn // len(targets) + turn) % len(own)]
            yield CleanEditRecipe(
                picture,
                finding,
                direction,
                derive_seed(seed, picture.image.id, finding.name, direction.value, turn),
                f"{picture.image.id} {finding.name} {direction.value} {turn}",
            )
        if not dealt:
            return
        turn += 1


def renderers(modality: str) -> dict[str, FindingRenderer]:
    """The procedural renderers of a modality, by finding; none for a modality that has no package."""
    if modality not in PACKAGES:
        return {}
    found: dict[str, FindingRenderer] = import_module(PACKAGES[modality]).RENDERERS
    return found


def render(recipe: CleanEditRecipe) -> CleanEdit:
    """Makes a clean edit.

    To remove a finding, it is drawn first; the drawn image is the original, and the real picture is what a perfect
    removal leaves. So the worth of a renderer's own removal does not enter the false alarms.

    Raises:
        CannotShow: the finding cannot be shown on this picture.
    """
    image, finding = recipe.picture.image, recipe.finding
    obstacle = why_not_shown(finding, image)
    if obstacle:
        raise CannotShow(obstacle)
    rng = np.random.default_rng(recipe.seed)
    wish = _wish(recipe, rng)
    renderer = renderers(image.modality)[finding.name]
    original = decode(recipe.picture.data)
    added = renderer.add(_scene(recipe, original, wish, Direction.ADD))
    if recipe.direction is Direction.ADD:
        return _clean(recipe, wish, original, added)
    drawn = decode(encode_source(added.pixels))
    return _clean(recipe, wish, drawn, replace(added, pixels=original))


def _wish(recipe: CleanEditRecipe, rng: np.random.Generator) -> Intent:
    sides, zones = (
        sides_on(recipe.finding, recipe.picture.image),
        zones_on(recipe.finding, recipe.picture.image),
    )
    return Intent(
        finding=recipe.finding.name,
        direction=recipe.direction,
        side=sides[int(rng.integers(len(sides)))] if sides else None,
        zone=zones[int(rng.integers(len(zones)))] if zones else None,
        extent=("moderate", "large")[int(rng.integers(2))],
        conspicuity=("moderate", "marked")[int(rng.integers(2))],
    )


def _instruction(recipe: CleanEditRecipe, wish: Intent, direction: Direction) -> str:
    return compose(
        Intent(wish.finding, direction, wish.side, wish.zone, wish.extent, wish.conspicuity),
        recipe.finding,
        phrasing=recipe.seed % 4,
    )


def _scene(recipe: CleanEditRecipe, pixels: np.ndarray, wish: Intent, direction: Direction) -> Scene:
    """As the editor sees it: the intent is read back from the words."""
    intent = read_instruction(_instruction(recipe, wish, direction), [recipe.finding])
    rng = np.random.default_rng(derive_seed(recipe.seed, direction.value))
    return Scene(pixels, recipe.picture.image, recipe.finding, intent, rng)


def _clean(recipe: CleanEditRecipe, wish: Intent, original: np.ndarray, rendering: Rendering) -> CleanEdit:
    instruction = _instruction(recipe, wish, recipe.direction)
    drawn = recipe.direction is Direction.REMOVE
    return CleanEdit(
        image=replace(recipe.picture.image, synthetic=True) if drawn else recipe.picture.image,
        finding=recipe.finding,
        direction=recipe.direction,
        intent=read_instruction(instruction, [recipe.finding]),
        instruction=instruction,
        original=original,
        edited=decode(encode_jpeg(rendering.pixels)),
        mask=rendering.mask,
        support=rendering.support,
        name=recipe.name,
    )


def rendered_or_reason(recipe: CleanEditRecipe) -> CleanEdit | str:
    """The clean edit, or why there is none."""
    try:
        return render(recipe)
    except CannotShow as reason:
        return str(reason)
    except (ArithmeticError, ValueError, IndexError, cv2.error, np.linalg.LinAlgError) as error:
        return f"the renderer failed: {type(error).__name__}: {error}"
