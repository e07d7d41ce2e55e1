"""The edits of an audit: clean edits and all variants of them that a judge should notice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plantain.audit.clean import CleanEditRecipe, rendered_or_reason
from plantain.audit.controls import NAIVE_EDITORS, REENCODED, naive
from plantain.audit.gate import ACCEPTED, BLACK, CLEAN, IDENTICAL, UNEDITED, thresholds
from plantain.audit.planted_defects import DEFECTS, CleanEdit, NotApplicable, plant
from plantain.findings import why_not_shown
from plantain.offline.language import Intent, compose
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Finding, InputError, derive_seed
from plantain.records.messages import suggest

SWAPPED = "swapped label"

KEPT = tuple(f"{ACCEPTED} {name}" for name in REENCODED)
"""Accepted edits, re-encoded; only an edit that the judge accepted has them."""

CONTROLS = (CLEAN, IDENTICAL, BLACK, *(f"{UNEDITED} {name}" for name in REENCODED), SWAPPED, *NAIVE_EDITORS)
KINDS = (*CONTROLS, *KEPT, *(defect.name for defect in DEFECTS))
"""Every kind of edit that an audit asks about."""


def chosen_kinds(text: str) -> tuple[str, ...]:
    """Parse kinds of edits separated by commas; "controls" and "defects" are groups, "" means all.

    Raises:
        InputError: a kind is unknown.
    """
    groups = {"controls": (*CONTROLS, *KEPT), "defects": tuple(defect.name for defect in DEFECTS)}
    wanted: list[str] = []
    for name in (name.strip() for name in text.split(",") if name.strip()):
        if name not in groups and name not in KINDS:
            raise InputError(f"--kinds: no kind of edit {name!r}; {suggest(name, [*groups, *KINDS])}")
        wanted += groups.get(name, (name,))
    return tuple(dict.fromkeys((CLEAN, *wanted))) if wanted else KINDS


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One edit of an audit, encoded for the judge.

    Attributes:
        kind: kind of the edit, out of `KINDS`.
        recipe: inputs of the clean edit that it is, or was made from.
        finding: the requested finding; for a swapped label not the drawn one.
        instruction: the instruction that the judge receives.
        original, edited: the images before and after, as the bytes of files.
        detail: text that distinguishes trials of one kind and recipe.
        violates: criteria that a planted defect violates.
        may_be: True if the drawing may really show the requested finding.
    """

    kind: str
    recipe: CleanEditRecipe
    finding: Finding
    instruction: str
    original: bytes
    edited: bytes
    detail: str = ""
    violates: tuple[str, ...] = ()
    may_be: bool = False

    @property
    def name(self) -> str:
        return f"{self.recipe.name} {self.kind} {self.detail}".rstrip()


def trials_of(
    recipe: CleanEditRecipe, kinds: Collection[str], others: Sequence[Finding]
) -> list[Trial] | str:
    """Render a clean edit and all requested variants that apply; slow, so run in a worker process.

    Args:
        recipe: inputs of the clean edit.
        kinds: kinds of variants, out of `KINDS`.
        others: findings of the same modality, for swapped labels.

    Returns:
        The trials, the clean edit first, or the reason why no clean edit exists.
    """
    clean = rendered_or_reason(recipe)
    if isinstance(clean, str):
        return clean
    original, edited = encode_source(clean.original), encode_jpeg(clean.edited)
    first = Trial(CLEAN, recipe, recipe.finding, clean.instruction, original, edited)
    trials = [first]
    if IDENTICAL in kinds:
        trials.append(replace(first, kind=IDENTICAL, edited=encode_jpeg(clean.original)))
    if BLACK in kinds:
        trials.append(replace(first, kind=BLACK, edited=encode_jpeg(np.zeros_like(clean.edited))))
    for name, reencode in REENCODED.items():
        for prefix, pixels in ((UNEDITED, clean.original), (ACCEPTED, clean.edited)):
            if (kind := f"{prefix} {name}") in kinds:
                trials.append(replace(first, kind=kind, edited=encode_jpeg(reencode(pixels))))
    if SWAPPED in kinds:
        trials += _swapped(first, others)
    trials += _naive(first, clean, kinds)
    trials += _defective(first, clean, kinds)
    return trials


def _swapped(first: Trial, others: Sequence[Finding]) -> Iterator[Trial]:
    """Yield the edit under every other finding that the image could show and that would be wrong."""
    recipe, image = first.recipe, first.recipe.source.image
    for other in others:
        same = other.name == recipe.finding.name or other.normal
        fits = thresholds().fits(image.modality, recipe.finding.name, other.name)
        if same or fits or why_not_shown(other, image):
            continue
        words = compose(Intent(other.name, recipe.direction), other, phrasing=recipe.seed % 4)
        yield replace(first, kind=SWAPPED, detail=other.name, finding=other, instruction=words)


def _naive(first: Trial, clean: CleanEdit, kinds: Collection[str]) -> Iterator[Trial]:
    for name in NAIVE_EDITORS:
        if name not in kinds:
            continue
        try:
            drawn = naive(name, clean, derive_seed(first.recipe.seed, name))
        except NotApplicable:
            continue
        may_be = clean.finding.name in thresholds().may_be.get(name, ())
        yield replace(first, kind=name, edited=encode_jpeg(drawn), may_be=may_be)


def _defective(first: Trial, clean: CleanEdit, kinds: Collection[str]) -> Iterator[Trial]:
    for defect in DEFECTS:
        if defect.name not in kinds:
            continue
        try:
            defective = plant(defect, clean, derive_seed(first.recipe.seed, defect.name))
        except NotApplicable:
            continue
        violates = tuple(criterion.value for criterion in defect.violates[clean.direction])
        original, edited = encode_source(defective.original), encode_jpeg(defective.edited)
        yield replace(first, kind=defect.name, violates=violates, original=original, edited=edited)
