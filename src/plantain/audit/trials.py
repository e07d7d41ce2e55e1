"""The edits of an audit: a clean one, and everything that is made of it to see whether a judge notices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from plantain.audit.clean import CleanEditRecipe, rendered_or_reason
from plantain.audit.controls import NAIVE_EDITORS, REENCODED, naive
from plantain.audit.gate import ACCEPTED, CLEAN, UNEDITED, thresholds
from plantain.audit.injections import Injection, inject, injections
from plantain.audit.planted_defects import DEFECTS, CleanEdit, NotApplicable, plant
from plantain.findings import why_not_shown
from plantain.offline.language import Intent, compose
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Finding, InputError, Outcome, derive_seed
from plantain.records.suggestions import suggest

IDENTICAL, SWAPPED, INJECTED = "identical", "swapped label", "injected words"

KEPT = tuple(f"{ACCEPTED} {name}" for name in REENCODED)
"""Kinds that only an edit that the judge accepted has: the same after what carries no meaning."""

CONTROLS = (CLEAN, IDENTICAL, *(f"{UNEDITED} {name}" for name in REENCODED), SWAPPED, *NAIVE_EDITORS)
KINDS = (*CONTROLS, *KEPT, INJECTED, *(defect.name for defect in DEFECTS))
"""Every kind of edit that an audit asks about."""


def chosen_kinds(text: str) -> tuple[str, ...]:
    """The kinds that a person names, separated by commas, "controls" and "defects" among them; all for "".

    Raises:
        InputError: there is no such kind.
    """
    groups = {"controls": (*CONTROLS, *KEPT, INJECTED), "defects": tuple(defect.name for defect in DEFECTS)}
    wanted: list[str] = []
    for name in (name.strip() for name in text.split(",") if name.strip()):
        if name not in groups and name not in KINDS:
            raise InputError(f"--kinds: no kind of edit {name!r}; {suggest(name, [*groups, *KINDS])}")
        wanted += groups.get(name, (name,))
    return tuple(dict.fromkeys((CLEAN, *wanted))) if wanted else KINDS


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One edit as the judge will see it, encoded.

    Attributes:
        kind: out of `KINDS`.
        detail: tells trials of one kind and recipe apart.
        finding: that is asked for, of a swapped label another than was drawn.
        violates: the criteria that a planted defect violates.
        may_be: what was asked for may truly be what was drawn.
        injection: the words in it.
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
    injection: Injection | None = None

    @property
    def name(self) -> str:
        return f"{self.recipe.name} {self.kind} {self.detail}".rstrip()


def trials_of(
    recipe: CleanEditRecipe, kinds: Collection[str], amplitude: str, others: Sequence[Finding]
) -> list[Trial] | Outcome | str:
    """Renders a recipe and makes everything of it that is asked for and can be made; the clean edit comes first.

    Runs in a worker.

    Args:
        recipe: of the clean edit.
        kinds: out of `KINDS`.
        amplitude: of the planted defects.
        others: findings of the same modality, for swapped labels.

    Returns:
        The trials, or why there is no clean edit.
    """
    clean = rendered_or_reason(recipe)
    if isinstance(clean, str):
        return clean
    original, edited = encode_source(clean.original), encode_jpeg(clean.edited)
    first = Trial(CLEAN, recipe, recipe.finding, clean.instruction, original, edited)
    trials = [first, *_unedited(first, clean, kinds), *_kept(first, clean, kinds)]
    trials += _swapped(first, others) if SWAPPED in kinds else []
    trials += _naive(first, clean, kinds)
    trials += _spoilt(first, clean, kinds, amplitude)
    trials += _injected(first, clean) if INJECTED in kinds else []
    return trials


def _unedited(first: Trial, clean: CleanEdit, kinds: Collection[str]) -> list[Trial]:
    made = [replace(first, kind=IDENTICAL, edited=encode_jpeg(clean.original))] if IDENTICAL in kinds else []
    for name, encoded in REENCODED.items():
        if (kind := f"{UNEDITED} {name}") in kinds:
            made.append(replace(first, kind=kind, edited=encode_jpeg(encoded(clean.original))))
    return made


def _kept(first: Trial, clean: CleanEdit, kinds: Collection[str]) -> list[Trial]:
    return [
        replace(
            first, kind=kind, edited=encode_jpeg(REENCODED[kind.removeprefix(f"{ACCEPTED} ")](clean.edited))
        )
        for kind in KEPT
        if kind in kinds
    ]


def _swapped(first: Trial, others: Sequence[Finding]) -> list[Trial]:
    """The same edit under every other finding that could be shown here and would not be right as well."""
    made, recipe, limits = [], first.recipe, thresholds()
    image = recipe.picture.image
    for other in others:
        same = other.name == recipe.finding.name or other.normal
        if (
            same
            or why_not_shown(other, image)
            or limits.fits(image.modality, recipe.finding.name, other.name)
        ):
            continue
        words = compose(Intent(other.name, recipe.direction), other, phrasing=recipe.seed % 4)
        made.append(replace(first, kind=SWAPPED, detail=other.name, finding=other, instruction=words))
    return made


def _naive(first: Trial, clean: CleanEdit, kinds: Collection[str]) -> list[Trial]:
    made = []
    for name in NAIVE_EDITORS:
        if name not in kinds:
            continue
        try:
            drawn = naive(name, clean, derive_seed(first.recipe.seed, name))
        except NotApplicable:
            continue
        may_be = clean.finding.name in thresholds().may_be.get(name, ())
        made.append(replace(first, kind=name, edited=encode_jpeg(drawn), may_be=may_be))
    return made


def _spoilt(first: Trial, clean: CleanEdit, kinds: Collection[str], amplitude: str) -> list[Trial]:
    made = []
    for defect in DEFECTS:
        if defect.name not in kinds:
            continue
        try:
            spoilt = plant(defect, clean, amplitude, derive_seed(first.recipe.seed, defect.name))
        except NotApplicable:
            continue
        violates = tuple(criterion.value for criterion in defect.violates[clean.direction])
        made.append(replace(_encoded(first, spoilt), kind=defect.name, violates=violates))
    return made


def _injected(first: Trial, clean: CleanEdit) -> list[Trial]:
    """One of the forty injections: on an untouched picture what wants a pass, on the clean edit what wants a fail."""
    corpus = injections()
    injection = corpus[first.recipe.seed % len(corpus)]
    base = clean if injection.wants == "fail" else replace(clean, edited=clean.original)
    try:
        spoilt = inject(injection, base, derive_seed(first.recipe.seed, injection.name))
    except NotApplicable:
        return []
    return [replace(_encoded(first, spoilt), kind=INJECTED, detail=injection.name, injection=injection)]


def _encoded(first: Trial, edit: CleanEdit) -> Trial:
    return replace(
        first,
        instruction=edit.instruction,
        original=encode_source(edit.original),
        edited=encode_jpeg(edit.edited),
    )
