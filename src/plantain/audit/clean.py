"""Clean edits for an audit, made without a judge: drawn by the procedural editor, or the exact undoing of a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.audit.images import AuditImage
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
    """The inputs of one clean edit; rendering it twice gives the same bytes.

    Attributes:
        source: the real image.
        finding, direction: finding and direction of the edit.
        seed: seed of side, zone and extent, and of the rendering.
        name: readable name, unique in the audit.
    """

    source: AuditImage
    finding: Finding
    direction: Direction
    seed: int
    name: str


def recipes(images: Sequence[AuditImage], taxonomy: Taxonomy, seed: int) -> Iterator[CleanEditRecipe]:
    """Yield clean edits to render, without end, cycling through modalities, findings, directions and images.

    Args:
        images: real images.
        taxonomy: contains the findings; if none of them can be drawn, nothing is yielded.
        seed: seed of all random choices.
    """
    by_modality: dict[str, list[AuditImage]] = {}
    for source in images:
        by_modality.setdefault(source.image.modality, []).append(source)
    turn = 0
    while True:
        dealt = False
        for modality, own in by_modality.items():
            renderable = drawable(taxonomy, modality)
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
            source = own[(turn // len(targets) + turn) % len(own)]
            yield CleanEditRecipe(
                source,
                finding,
                direction,
                derive_seed(seed, source.image.id, finding.name, direction.value, turn),
                f"{source.image.id} {finding.name} {direction.value} {turn}",
            )
        if not dealt:
            return
        turn += 1


def drawable(taxonomy: Taxonomy, modality: str) -> frozenset[str]:
    """Return the names of a modality's findings that the procedural editor can draw."""
    return frozenset(finding.name for finding in taxonomy.of(modality) if finding.draw)


def rendered_or_reason(recipe: CleanEditRecipe) -> CleanEdit | str:
    """Render a clean edit from its inputs; return the reason as a str if it cannot be shown or drawing fails.

    For a removal the finding is drawn on the real image: the drawing is the original, the real image the edit.
    """
    try:
        return _rendered(recipe)
    except CannotShow as reason:
        return str(reason)
    except (ArithmeticError, ValueError, IndexError, cv2.error, np.linalg.LinAlgError) as error:
        return f"drawing failed: {type(error).__name__}: {error}"


def _rendered(recipe: CleanEditRecipe) -> CleanEdit:
    image, finding = recipe.source.image, recipe.finding
    obstacle = why_not_shown(finding, image)
    if obstacle:
        raise CannotShow(obstacle)
    rng = np.random.default_rng(recipe.seed)
    intended = _intent(recipe, rng)
    original = decode(recipe.source.data)
    # The editor reads the intent from the instruction, so the audit does too.
    intent = read_instruction(_instruction(recipe, intended, Direction.ADD), [finding])
    added = add(original, image, finding, intent, np.random.default_rng(derive_seed(recipe.seed, "draw")))
    if recipe.direction is Direction.ADD:
        return _clean(recipe, intended, original, added)
    drawn = decode(encode_source(added.pixels))
    return _clean(recipe, intended, drawn, replace(added, pixels=original))


def _intent(recipe: CleanEditRecipe, rng: np.random.Generator) -> Intent:
    finding, image = recipe.finding, recipe.source.image
    sides, zones = sides_on(finding, image), zones_on(finding, image)
    return Intent(
        finding=recipe.finding.name,
        direction=recipe.direction,
        side=sides[int(rng.integers(len(sides)))] if sides else None,
        zone=zones[int(rng.integers(len(zones)))] if zones else None,
        extent=("moderate", "large")[int(rng.integers(2))],
        conspicuity=("moderate", "marked")[int(rng.integers(2))],
    )


def _instruction(recipe: CleanEditRecipe, intent: Intent, direction: Direction) -> str:
    return compose(replace(intent, direction=direction), recipe.finding, phrasing=recipe.seed % 4)


def _clean(recipe: CleanEditRecipe, intent: Intent, original: np.ndarray, rendering: Rendering) -> CleanEdit:
    instruction = _instruction(recipe, intent, recipe.direction)
    drawn = recipe.direction is Direction.REMOVE
    return CleanEdit(
        image=replace(recipe.source.image, synthetic=True) if drawn else recipe.source.image,
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
