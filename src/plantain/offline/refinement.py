"""What the offline writer asks for: a first choice drawn from the seed, then changes that answer what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plantain.findings import sides_on, zones_on
from plantain.offline.language import Intent, read_instruction
from plantain.offline.vocabulary import VARIANTS
from plantain.records import Attempt, Criterion, Direction, FailureCode, Finding, SourceImage

EXTENTS = ("small", "moderate", "large")
CONSPICUITIES = ("subtle", "moderate", "marked")
SOFTNESSES = ("crisp", "medium", "soft")

EXTENT_WEIGHTS = (0.35, 0.40, 0.25)
CONSPICUITY_WEIGHTS = (0.35, 0.40, 0.25)
SOFTNESS_WEIGHTS = (0.5, 0.3, 0.2)
"""Of a first request: how often small, moderate, large; subtle, moderate, marked; edges left open, medium, soft.

A dataset needs small and faint findings as much as plain ones, so the first round is not the safest; it never asks for
crisp edges, which the rubric forbids."""

PLACEMENT = (FailureCode.REPETITION, FailureCode.DISTORTION, FailureCode.NON_TARGET_FINDING)
BLENDING = (FailureCode.HARD_EDGE, FailureCode.BLENDING_ARTEFACT, FailureCode.LOST_GRAIN)

_CODES = frozenset(FailureCode)
_IMPLIED: Mapping[str, tuple[FailureCode, ...]] = {
    Criterion.INSTRUCTION_COMPLIANCE: (FailureCode.TOO_SUBTLE,),
    Criterion.STRUCTURAL_PLAUSIBILITY: (FailureCode.DISTORTION,),
    Criterion.REALISM: (FailureCode.BLENDING_ARTEFACT,),
    Criterion.FIDELITY_PRESERVATION: (FailureCode.EXCESS_CHANGE,),
}
"""What to suppose when a judge fails a criterion without saying why."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What an instruction for this finding and image may choose between; empty where there is nothing to choose."""

    places: tuple[tuple[str | None, str | None], ...]
    extents: tuple[str, ...]
    conspicuities: tuple[str, ...]
    blends: bool
    movable: bool


def choices_for(finding: Finding, image: SourceImage, direction: Direction) -> Choices:
    """Places as (side, zone) pairs that this view, position and plane allow, and which looks can vary.

    A removal chooses no place and no look: what is there is not the writer's to invent.
    """
    sides: tuple[str | None, ...] = sides_on(finding, image) or (None,)
    zones: tuple[str | None, ...] = zones_on(finding, image) or (None,)
    adding = direction is Direction.ADD
    places = tuple((side, zone) for side in sides for zone in zones) if adding else ((None, None),)
    return Choices(
        places=places,
        extents=EXTENTS if finding.support != "diffuse" else (),
        conspicuities=CONSPICUITIES if finding.support != "warp" and adding else (),
        blends=finding.support == "local",
        movable=adding and finding.support == "local",
    )


def first_intent(
    finding: Finding, image: SourceImage, direction: Direction, rng: np.random.Generator
) -> Intent:
    """The request of round 1."""
    choices = choices_for(finding, image, direction)
    side, zone = choices.places[int(rng.integers(len(choices.places)))]
    extent = str(rng.choice(EXTENTS, p=EXTENT_WEIGHTS))
    conspicuity = str(rng.choice(CONSPICUITIES, p=CONSPICUITY_WEIGHTS))
    softness = (None, "medium", "soft")[int(rng.choice(3, p=SOFTNESS_WEIGHTS))]
    adding = direction is Direction.ADD
    return Intent(
        finding=finding.name,
        direction=direction,
        side=side,
        zone=zone,
        extent=extent if adding and choices.extents else None,
        conspicuity=conspicuity if choices.conspicuities else None,
        softness=softness if adding and choices.blends and finding.polarity == "brighter" else None,
    )


def failed_codes(attempt: Attempt) -> tuple[FailureCode, ...]:
    """Codes of the criteria that an attempt failed; a criterion without codes gives what it most often means."""
    if attempt.verdict is None:
        return ()
    codes: list[FailureCode] = []
    for criterion, result in attempt.verdict.observations.criteria.items():
        if not result.passed:
            known = [FailureCode(code) for code in result.codes if code in _CODES]
            codes.extend(known or _IMPLIED.get(criterion, ()))
    return tuple(dict.fromkeys(codes))


def next_intent(
    history: Sequence[Attempt],
    finding: Finding,
    image: SourceImage,
    direction: Direction,
    rng: np.random.Generator,
) -> Intent:
    """The request of the round after `history`: the last one, changed where its failed criteria point.

    A request that was made before is not made again while another placement or look is left.
    """
    choices = choices_for(finding, image, direction)
    tried = [_asked(attempt, finding, direction) for attempt in history]
    last = tried[-1]
    codes = set(failed_codes(history[-1]))
    if history[-1].verdict is None:
        wanted = _elsewhere(last, tried, choices, rng)
    else:
        wanted = _answered(last, codes, tried, choices, rng)
    if wanted not in tried:
        return wanted
    steered = codes & {FailureCode.TOO_SUBTLE, FailureCode.OVERCORRECTED, FailureCode.EXCESS_CHANGE}
    looks_free = direction is Direction.ADD and not steered
    others = _others(wanted, choices, rng, looks_free=looks_free)
    return next((other for other in others if other not in tried), wanted)


def _asked(attempt: Attempt, finding: Finding, direction: Direction) -> Intent:
    heard = read_instruction(attempt.instruction, (finding,))
    return replace(heard, finding=finding.name, direction=direction)


def _answered(
    last: Intent, codes: set[FailureCode], tried: Sequence[Intent], choices: Choices, rng: np.random.Generator
) -> Intent:
    wanted = last
    louder = FailureCode.TOO_SUBTLE in codes and FailureCode.OVERCORRECTED not in codes
    quieter = FailureCode.OVERCORRECTED in codes and FailureCode.TOO_SUBTLE not in codes
    if louder:
        wanted = _louder(wanted, choices, may_grow=FailureCode.EXCESS_CHANGE not in codes)
    if quieter:
        wanted = _quieter(wanted, choices)
    if FailureCode.EXCESS_CHANGE in codes and choices.extents:
        wanted = replace(wanted, extent=_step(choices.extents, wanted.extent, -1))
    if codes & set(BLENDING) and choices.blends:
        if wanted.softness == "soft" and choices.conspicuities and not louder:
            wanted = replace(wanted, conspicuity=_step(CONSPICUITIES, wanted.conspicuity, -1))
        wanted = replace(wanted, softness="medium" if wanted.softness == "crisp" else "soft")
    if FailureCode.WRONG_LOCATION in codes:
        wanted = _elsewhere(wanted, tried, choices, rng)
    elif codes & set(PLACEMENT) and choices.movable:
        wanted = replace(wanted, variant=_unused_variant(tried, rng))
    return wanted


def _louder(wanted: Intent, choices: Choices, *, may_grow: bool) -> Intent:
    if choices.conspicuities and wanted.conspicuity != "marked":
        return replace(wanted, conspicuity=_step(CONSPICUITIES, wanted.conspicuity, 1))
    if choices.extents and may_grow:
        return replace(wanted, extent=_step(EXTENTS, wanted.extent, 1))
    return wanted


def _quieter(wanted: Intent, choices: Choices) -> Intent:
    if choices.conspicuities and wanted.conspicuity != "subtle":
        return replace(wanted, conspicuity=_step(CONSPICUITIES, wanted.conspicuity, -1))
    if choices.extents:
        return replace(wanted, extent=_step(EXTENTS, wanted.extent, -1))
    return wanted


def _step(scale: Sequence[str], value: str | None, by: int) -> str:
    """The neighbouring step of a scale; what was left unsaid counts as the middle."""
    position = scale.index(value) if value in scale else 1
    return scale[min(max(position + by, 0), len(scale) - 1)]


def _elsewhere(last: Intent, tried: Sequence[Intent], choices: Choices, rng: np.random.Generator) -> Intent:
    """A place that was not asked for yet: first one said in full where it was left open, then another zone or side."""
    used = {(intent.side, intent.zone) for intent in tried}
    fresh = [place for place in choices.places if place not in used]
    agreeing = [
        place
        for place in fresh
        if last.side in (None, place[0]) and last.zone in (None, place[1]) and place != (None, None)
    ]
    same_side = [place for place in fresh if place[0] == last.side]
    options = agreeing or same_side or fresh
    if options:
        side, zone = options[int(rng.integers(len(options)))]
        return replace(last, side=side, zone=zone, variant=0)
    return replace(last, variant=_unused_variant(tried, rng)) if choices.movable else last


def _unused_variant(tried: Sequence[Intent], rng: np.random.Generator) -> int:
    used = {intent.variant for intent in tried}
    free = [variant for variant in range(1, VARIANTS) if variant not in used] or list(range(1, VARIANTS))
    return free[int(rng.integers(len(free)))]


def _others(
    wanted: Intent, choices: Choices, rng: np.random.Generator, *, looks_free: bool
) -> Iterator[Intent]:
    """Requests near the wanted one, nearest first: another placement, softer, another place, then other looks.

    Looks are not free where the last verdict steered them: "too subtle" must not be answered with "small".
    """
    if choices.movable:
        for variant in rng.permutation(VARIANTS):
            yield replace(wanted, variant=int(variant))
    if choices.blends:
        yield replace(wanted, softness="soft")
    for index in rng.permutation(len(choices.places)):
        side, zone = choices.places[int(index)]
        yield replace(wanted, side=side, zone=zone)
    if not looks_free:
        return
    for extent in (choices.extents[i] for i in rng.permutation(len(choices.extents))):
        yield replace(wanted, extent=extent)
    for conspicuity in (choices.conspicuities[i] for i in rng.permutation(len(choices.conspicuities))):
        yield replace(wanted, conspicuity=conspicuity)
