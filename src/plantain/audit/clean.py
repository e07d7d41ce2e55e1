"""Clean edits for an audit: drawn by the procedural editor, or the exact undoing of a drawing; no judge is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.audit.pictures import TrialPicture
from plantain.audit.planted_defects import CleanEdit
from plantain.findings import Taxonomy, sides_on, why_not_shown, zones_on
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.drawing.adding import Rendering, add
from plantain.offline.language import Intent, compose, read_instruction
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
        findings: names to use; empty for all that the editor draws.
    """
    by_modality: dict[str, list[TrialPicture]] = {}
    for picture in pictures:
        by_modality.setdefault(picture.image.modality, []).append(picture)
    turn = 0
    while True:
        dealt = False
        for modality, own in by_modality.items():
            renderable = {name for name in drawable(taxonomy, modality) if not findings or name in findings}
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


def drawable(taxonomy: Taxonomy, modality: str) -> frozenset[str]:
    """Return the names of the findings of a modality that the procedural editor draws."""
    return frozenset(finding.name for finding in taxonomy.of(modality) if finding.draw)


def render(recipe: CleanEditRecipe) -> CleanEdit:
    """Makes a clean edit.

    To remove a finding, it is drawn first: the drawing is the original, and the real image is its perfect removal.

    Raises:
        CannotShow: the finding cannot be shown on this picture.
    """
    image, finding = recipe.picture.image, recipe.finding
    obstacle = why_not_shown(finding, image)
    if obstacle:
        raise CannotShow(obstacle)
    rng = np.random.default_rng(recipe.seed)
    wish = _wish(recipe, rng)
    original = decode(recipe.picture.data)
    # As the editor is asked: the intent is read back from the words.
    intent = read_instruction(_instruction(recipe, wish, Direction.ADD), [finding])
    added = add(original, image, finding, intent, np.random.default_rng(derive_seed(recipe.seed, "draw")))
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
        return f"drawing failed: {type(error).__name__}: {error}"
