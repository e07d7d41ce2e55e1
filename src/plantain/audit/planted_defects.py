"""Planted defects: clean edits corrupted in one stated way each, to test whether a judge notices.

Lengths are pixels of a 1024-pixel frame, levels are grey levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import cv2
import numpy as np
import numpy.typing as npt

from plantain.audit import corruptions as spoiling
from plantain.offline.language import Intent
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import Criterion, Direction, Finding, SourceImage

COMPLIANCE = Criterion.INSTRUCTION_COMPLIANCE
PLAUSIBILITY = Criterion.STRUCTURAL_PLAUSIBILITY
REALISM = Criterion.REALISM
FIDELITY = Criterion.FIDELITY_PRESERVATION


@dataclass(frozen=True, slots=True, eq=False)
class CleanEdit:
    """An edit that is correct by construction.

    Attributes:
        image: record of the original.
        finding, direction, intent, instruction: the requested edit.
        original, edited: uint8 (H, W, 3).
        mask: bool (H, W), the intended change.
        support: "local", "diffuse" or "warp".
        name: origin, e.g. "mni152-t1-axial-z20 glioma add 3".
    """

    image: SourceImage
    finding: Finding
    direction: Direction
    intent: Intent
    instruction: str
    original: Pixels
    edited: Pixels
    mask: Mask
    support: str
    name: str


class NotApplicable(Exception):
    """Raised if a defect does not apply to an edit; the message is the reason."""


Spoil = Callable[[CleanEdit, np.random.Generator], CleanEdit]


@dataclass(frozen=True, slots=True)
class Defect:
    """One kind of defect that is planted into clean edits.

    Attributes:
        name: short name, used in tables and JSON.
        violates: the criteria that a good judge must fail, by direction of the edit.
        spoil: function that plants the defect, or raises NotApplicable.
    """

    name: str
    violates: Mapping[Direction, tuple[Criterion, ...]]
    spoil: Spoil


def plant(defect: Defect, clean: CleanEdit, seed: int) -> CleanEdit:
    """Plant a defect into a clean edit and return the result.

    Raises:
        NotApplicable: the defect does not apply, or does not change these pixels.
    """
    spoilt = defect.spoil(clean, np.random.default_rng(seed))
    moved = np.abs(spoilt.edited.astype(np.int16) - clean.edited).max(axis=2)
    if float((moved >= 2).sum()) < 60 * _unit(clean) ** 2 and spoilt.original is clean.original:
        raise NotApplicable("the defect does not change the pixels")
    return spoilt


def _both(*criteria: Criterion) -> dict[Direction, tuple[Criterion, ...]]:
    return dict.fromkeys(Direction, criteria)


def _unit(clean: CleanEdit) -> float:
    return float(max(clean.original.shape[:2])) / 1024


def _with(clean: CleanEdit, values: npt.NDArray[np.floating]) -> CleanEdit:
    return replace(clean, edited=np.clip(np.rint(values), 0, 255).astype(np.uint8))


def _delta(clean: CleanEdit) -> npt.NDArray[np.float32]:
    return clean.edited.astype(np.float32) - clean.original.astype(np.float32)


def _local(clean: CleanEdit, what: str) -> None:
    if clean.support == "diffuse":
        raise NotApplicable(f"{what} does not apply to a change of the whole field")


def _weakened(clean: CleanEdit, rng: np.random.Generator, *, remains: float) -> CleanEdit:
    return _with(clean, clean.original + np.float32(remains) * _delta(clean))


def _wrong_side(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    if (
        clean.support != "local"
        or clean.intent.side not in ("left", "right")
        or clean.image.modality == "fundus"
    ):
        raise NotApplicable("the request has no side, or the finding has none")
    axis = spoiling.middle_column(clean.original)
    columns = np.flatnonzero(clean.mask.any(axis=0))
    if columns.size == 0 or abs(float(columns.mean()) - axis) < 0.08 * clean.mask.shape[1]:
        raise NotApplicable("the change is at the midline")
    return _with(clean, clean.original + spoiling.mirrored(_delta(clean), axis))


GLIOMA_SIGNED = ("T1", "T2", "FLAIR")
"""Sequences on which a glioma without contrast has one polarity: dark on T1, bright on T2 and FLAIR."""


def _inverted(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    signed = clean.finding.polarity in ("brighter", "darker")
    if clean.finding.name == "glioma":
        signed = clean.image.sequence in GLIOMA_SIGNED and clean.image.contrast in ("none", "unknown")
    if not signed:
        raise NotApplicable("the finding has no single polarity")
    return _with(clean, clean.original - _delta(clean))


def _seam(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    _local(clean, "a seam")
    patch = spoiling.solid(clean.mask, 25 * _unit(clean), 8 * _unit(clean))
    level = float(clean.edited[patch].mean()) if patch.any() else 128.0
    step = 14 * (1.0 if level < 140 else -1.0)
    return _with(clean, clean.edited + np.float32(step) * patch[..., None])


LEAST_GRAIN = 0.47
"""Rounding and JPEG leave about 0.4 grey levels in the finest octave; images enlarged fourfold have hardly more."""


def _lost_grain(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    _local(clean, "local grain")
    place = spoiling.solid(clean.mask, 20 * _unit(clean), 0)
    if spoiling.deep_area(place, 10 * _unit(clean)) < 1500 * _unit(clean) ** 2:
        raise NotApplicable("the change is too small or too thin to have grain of its own")
    grain = spoiling.plainest_grain(clean.original, clean.mask)
    if grain < LEAST_GRAIN:
        raise NotApplicable(f"the image has no grain to lose: {grain:.2f} grey levels in the plainest tiles")
    sigma = 2.5 * _unit(clean)
    smooth = np.asarray(cv2.GaussianBlur(clean.edited.astype(np.float32), (0, 0), sigma), np.float32)
    alpha = spoiling.soft(place, 4 * _unit(clean))
    return _with(clean, clean.edited + alpha[..., None] * (smooth - clean.edited.astype(np.float32)))


def _brightness(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    _local(clean, "a shift of brightness")
    lit = spoiling.content(clean.original)
    sign = 1.0 if rng.random() < 0.5 else -1.0
    return _with(clean, clean.edited + np.float32(14 * sign) * lit[..., None])


def _marks(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    """Add text to the edited image or, for half of the seeds, a side marker that changes its letter."""
    height, level = 34 * _unit(clean), 235
    place = spoiling.corner(clean.mask, (round(1.4 * height), round(5.5 * height)), 40, rng)
    if place is None:
        raise NotApplicable("no corner is free of the change")
    if clean.image.modality == "fundus" or rng.random() < 0.5:
        text = ("AP 14:32", "ERECT", "IMG 0271", "PORTABLE")[int(rng.integers(4))]
        return replace(clean, edited=spoiling.written(clean.edited, text, place, height, level))
    letters = ("L", "R") if rng.random() < 0.5 else ("R", "L")
    return replace(
        clean,
        original=spoiling.written(clean.original, letters[0], place, height, level),
        edited=spoiling.written(clean.edited, letters[1], place, height, level),
    )


def _across(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    """Write text across lung, brain or retina, away from the change."""
    height = 34 * _unit(clean)
    words = ("SUPINE 06:40", "SERIES 3", "PORTABLE AP", "ID 20117")[int(rng.integers(4))]
    place = spoiling.elsewhere(clean.original, clean.mask, 2 * height, rng)
    if place is None:
        raise NotApplicable("the change leaves no room for text")
    x, y = max(0, round(place[0] - 0.4 * height * len(words))), max(0, round(place[1] - height / 2))
    return replace(clean, edited=spoiling.written(clean.edited, words, (x, y), height, 200))


def _moved_elsewhere(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    """Move the finding that should be removed to the other side."""
    _removal(clean)
    axis = spoiling.middle_column(clean.original)
    lesion = -_delta(clean)
    return _with(clean, clean.edited + spoiling.mirrored(lesion, axis))


def _left_half(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    """Remove only one half of the finding."""
    _removal(clean)
    xs = np.nonzero(clean.mask)[1]
    columns = np.arange(clean.mask.shape[1])
    stays = np.clip((columns - float(np.median(xs))) / (8 * _unit(clean)) + 0.5, 0, 1)
    stays = stays if rng.random() < 0.5 else 1 - stays
    return _with(clean, clean.edited - stays[None, :, None] * _delta(clean))


def _removal(clean: CleanEdit) -> None:
    if clean.direction is not Direction.REMOVE or clean.support != "local" or not clean.mask.any():
        raise NotApplicable("only a local finding that is removed can stay behind or move")


def _copied(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    return _with(clean, spoiling.with_copies(clean.edited, clean.mask, round(88 * _unit(clean)), rng))


def _outside(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    _local(clean, "outside")
    unit = _unit(clean)
    radius = 70 * unit
    place = spoiling.elsewhere(clean.original, clean.mask, radius + 80 * unit, rng)
    if place is None:
        raise NotApplicable("the change leaves no room outside it")
    blob = spoiling.blob(clean.mask.shape, place, radius)
    sign = 1.0 if float(clean.edited[place[1], place[0]].mean()) < 140 else -1.0
    return _with(clean, clean.edited + sign * 20 * blob[..., None])


def _out_of_anatomy(clean: CleanEdit, rng: np.random.Generator) -> CleanEdit:
    if clean.support != "local" or clean.direction is not Direction.ADD:
        raise NotApplicable("only a local finding that is added can be put elsewhere")
    target = spoiling.foreign_place(clean.original, clean.image.modality, clean.finding.name, clean.mask)
    if target is None:
        raise NotApplicable("the finding may be anywhere in this image")
    ys, xs = np.nonzero(clean.mask)
    dx, dy = target[0] - float(xs.mean()), target[1] - float(ys.mean())
    # A dark change on a black background is invisible, so it is drawn bright there.
    delta = spoiling.moved(_delta(clean), round(dx), round(dy))
    if clean.finding.name == "meningioma" and spoiling.at_dura(clean.original, delta) > 0.02:
        raise NotApplicable("it is too large to fit away from the dura")
    visible = np.where(clean.original + delta < 4, np.abs(delta), delta).astype(np.float32)
    return _with(clean, clean.original.astype(np.float32) + visible)


DEFECTS: tuple[Defect, ...] = (
    Defect("no change", _both(COMPLIANCE), partial(_weakened, remains=0.0)),
    Defect("wrong side", _both(COMPLIANCE), _wrong_side),
    Defect(
        "inverted polarity",
        {Direction.ADD: (COMPLIANCE, PLAUSIBILITY), Direction.REMOVE: (COMPLIANCE,)},
        _inverted,
    ),
    Defect("hard seam", _both(REALISM, FIDELITY), _seam),
    Defect("lost grain", _both(FIDELITY), _lost_grain),
    Defect("global brightness", _both(FIDELITY), _brightness),
    Defect("text or marker", _both(FIDELITY), _marks),
    Defect("pasted patch", _both(REALISM), _copied),
    Defect("change outside", _both(FIDELITY), _outside),
    Defect("outside the anatomy", _both(COMPLIANCE, PLAUSIBILITY), _out_of_anatomy),
    Defect("text across", _both(FIDELITY), _across),
    Defect("20 % strength", _both(COMPLIANCE), partial(_weakened, remains=0.2)),
    Defect("moved elsewhere", _both(FIDELITY), _moved_elsewhere),
    Defect("half left", _both(COMPLIANCE), _left_half),
)
"""All defects. A judge's own code must never read this."""
