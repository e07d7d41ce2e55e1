"""The edits of an audit: clean edits and all variants of them that a judge should notice.

Variants are changes without meaning (codecs, a resize, a shift), drawings of naive editors, planted defects, swapped
labels and injected words. Lengths are pixels of a 1024-pixel frame, levels are grey levels; images uint8 (H, W, 3).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import cv2
import numpy as np

from plantain.audit import corruptions as spoiling
from plantain.audit.clean import CleanEditRecipe, rendered_or_reason
from plantain.audit.gate import ACCEPTED, BLACK, CLEAN, IDENTICAL, UNEDITED, thresholds
from plantain.audit.injections import Injection, inject, injections
from plantain.audit.planted_defects import DEFECTS, CleanEdit, NotApplicable, plant
from plantain.findings import why_not_shown
from plantain.offline.language import Intent, compose
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import compressed, encode_jpeg, encode_source
from plantain.records import Direction, Finding, InputError, derive_seed
from plantain.records.messages import suggest

DOTS = 14
BLOB_LEVELS, DOT_LEVELS, WASH_LEVELS = 40.0, 45.0, 22.0


def jpeg(pixels: Pixels, quality: int) -> Pixels:
    """Return the image encoded with 4:2:0 subsampling, as most programs do, and decoded."""
    return decode(compressed(".jpg", pixels, cv2.IMWRITE_JPEG_QUALITY, quality))


def resized(pixels: Pixels) -> Pixels:
    """Return the image after a resize to three quarters and back."""
    rows, columns = pixels.shape[:2]
    small = cv2.resize(pixels, (round(0.75 * columns), round(0.75 * rows)), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, (columns, rows), interpolation=cv2.INTER_CUBIC), np.uint8)


def shifted(pixels: Pixels) -> Pixels:
    """Return the image shifted one pixel to the right; the border is repeated."""
    return np.concatenate([pixels[:, :1], pixels[:, :-1]], axis=1)


def brighter(pixels: Pixels) -> Pixels:
    """Return the image three grey levels brighter outside black padding."""
    lit = pixels.max(axis=2, keepdims=True) > 4
    raised = np.clip(pixels.astype(np.int16) + 3, 0, 255)
    return np.asarray(np.where(lit, raised, pixels), np.uint8)


REENCODED: Mapping[str, Callable[[Pixels], Pixels]] = {
    "jpeg 90": partial(jpeg, quality=90),
    "jpeg 75": partial(jpeg, quality=75),
    "resized and back": resized,
    "1 pixel": shifted,
    "3 grey levels": brighter,
}
"""Changes that a hosted editor makes to every image, by name."""


def blob(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Draw one soft blob in place of the finding, brighter or darker as the finding is."""
    return _lifted(edit, [_middle(edit)], _unit(edit) * 90, BLOB_LEVELS)


def dots(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Draw fourteen small blobs all over the content."""
    places = [spoiling.elsewhere(edit.original, np.zeros_like(edit.mask), 0, rng) for _ in range(DOTS)]
    return _lifted(edit, [place for place in places if place is not None], _unit(edit) * 12, DOT_LEVELS)


def grey_wash(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Draw a wide, flat veil over the half of the content that contains the finding's place."""
    middle = _middle(edit)
    ys, xs = np.mgrid[: edit.mask.shape[0], : edit.mask.shape[1]]
    away = np.hypot(xs - middle[0], ys - middle[1]) / (_unit(edit) * 260)
    veil = np.clip(1.5 - away, 0, 1) * spoiling.content(edit.original)
    return _added(edit, WASH_LEVELS * _sign(edit) * veil.astype(np.float32))


def text(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Write the finding's name in its place."""
    x, y = _middle(edit)
    height = 30 * _unit(edit)
    words = edit.finding.title
    place = (max(0, round(x - 0.45 * height * len(words))), max(0, round(y - height / 2)))
    return spoiling.written(edit.original, words, place, height, 90)


def copied_patch(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Paste two patches from elsewhere side by side in place of the finding."""
    out = spoiling.with_copies(edit.original, edit.mask, round(88 * _unit(edit)), rng)
    return np.clip(np.rint(out), 0, 255).astype(np.uint8)


NAIVE_EDITORS: Mapping[str, Callable[[CleanEdit, np.random.Generator], Pixels]] = {
    "blob": blob,
    "dots": dots,
    "grey wash": grey_wash,
    "text": text,
    "copied patch": copied_patch,
}
"""Editors that know no disease; each gets only the place of the finding from the clean edit."""


def naive(name: str, edit: CleanEdit, seed: int) -> Pixels:
    """Return a naive editor's output for an original to which a finding is added.

    Raises:
        NotApplicable: the edit is a removal, or the drawing does not change this image.
    """
    if edit.direction is not Direction.ADD:
        raise NotApplicable("naive editors add")
    if not edit.mask.any():
        raise NotApplicable("the clean edit names no place")
    drawn = NAIVE_EDITORS[name](edit, np.random.default_rng(seed))
    if np.array_equal(drawn, edit.original):
        raise NotApplicable("the drawing does not change the image")
    return drawn


def _unit(edit: CleanEdit) -> float:
    return float(max(edit.original.shape[:2])) / 1024


def _middle(edit: CleanEdit) -> tuple[int, int]:
    """Return the pixel deepest inside the clean edit's mask, as (x, y)."""
    depth = cv2.distanceTransform(np.pad(edit.mask.astype(np.uint8), 1), cv2.DIST_L2, 3)[1:-1, 1:-1]
    y, x = np.unravel_index(int(depth.argmax()), depth.shape)
    return int(x), int(y)


def _sign(edit: CleanEdit) -> float:
    return -1.0 if edit.finding.polarity == "darker" else 1.0


def _lifted(edit: CleanEdit, places: list[tuple[int, int]], radius: float, levels: float) -> Pixels:
    hills = np.zeros(edit.mask.shape, np.float32)
    for place in places:
        hills = np.maximum(hills, spoiling.blob(edit.mask.shape, place, radius))
    return _added(edit, _sign(edit) * levels * hills)


def _added(edit: CleanEdit, change: np.ndarray) -> Pixels:
    lifted = np.clip(np.rint(edit.original + change[..., None]), 0, 255)
    return np.asarray(lifted, np.uint8)


SWAPPED, INJECTED = "swapped label", "injected words"

KEPT = tuple(f"{ACCEPTED} {name}" for name in REENCODED)
"""Accepted edits, re-encoded; only an edit that the judge accepted has them."""

CONTROLS = (CLEAN, IDENTICAL, BLACK, *(f"{UNEDITED} {name}" for name in REENCODED), SWAPPED, *NAIVE_EDITORS)
KINDS = (*CONTROLS, *KEPT, INJECTED, *(defect.name for defect in DEFECTS))
"""Every kind of edit that an audit asks about."""


def chosen_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds named in a list separated by commas; "controls" and "defects" are groups, "" means all.

    Raises:
        InputError: a kind is unknown.
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
    """One edit, encoded for the judge.

    Attributes:
        kind: out of `KINDS`.
        detail: distinguishes trials of one kind and recipe.
        finding: the requested one; for a swapped label not the drawn one.
        violates: criteria that a planted defect violates.
        may_be: the drawing may truly show the requested finding.
        injection: planted words that ask for a verdict.
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
    recipe: CleanEditRecipe, kinds: Collection[str], others: Sequence[Finding]
) -> list[Trial] | str:
    """Render a recipe and make all wanted variants that apply, the clean edit first; in a worker.

    Args:
        recipe: of the clean edit.
        kinds: out of `KINDS`.
        others: findings of the same modality, for swapped labels.

    Returns:
        The trials, or the reason why no clean edit exists.
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
    if INJECTED in kinds:
        trials += _injected(first, clean)
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
        yield replace(_encoded(first, defective), kind=defect.name, violates=violates)


def _injected(first: Trial, clean: CleanEdit) -> Iterator[Trial]:
    """Yield an injection: words that want a pass in an unedited image, words that want a fail in the clean edit."""
    injection = injections()[first.recipe.seed % len(injections())]
    base = clean if injection.wants == "fail" else replace(clean, edited=clean.original)
    try:
        spoilt = inject(injection, base, derive_seed(first.recipe.seed, injection.name))
    except NotApplicable:
        return
    yield replace(_encoded(first, spoilt), kind=INJECTED, detail=injection.name, injection=injection)


def _encoded(first: Trial, edit: CleanEdit) -> Trial:
    original, edited = encode_source(edit.original), encode_jpeg(edit.edited)
    return replace(first, instruction=edit.instruction, original=original, edited=edited)
