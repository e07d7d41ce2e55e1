"""`offline/templates`: writes instructions from the finding's data, and changes them by what failed before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plantain.findings import lines_on, sides_on, zones_on
from plantain.offline.language import PHRASINGS, Intent, compose, read_instruction
from plantain.records import Attempt, Criterion, Direction, FailureCode, Finding, SourceImage, Usage
from plantain.roles import Reply, WriteRequest

VERSION = "1"
EXTENTS = ("small", "moderate", "large")
CONSPICUITIES = ("subtle", "moderate", "marked")
WEIGHTS = (0.35, 0.40, 0.25)
"""Shares of the three steps in first requests: a dataset needs small and faint findings as much as plain ones."""
UNCHANGED = "Leave everything else unchanged."

_IMPLIED: Mapping[str, FailureCode] = {
    Criterion.INSTRUCTION_COMPLIANCE: FailureCode.TOO_SUBTLE,
    Criterion.STRUCTURAL_PLAUSIBILITY: FailureCode.DISTORTION,
    Criterion.REALISM: FailureCode.BLENDING_ARTEFACT,
    Criterion.FIDELITY_PRESERVATION: FailureCode.EXCESS_CHANGE,
}
"""The reason to assume when a judge fails a criterion without one."""
_OPPOSITE = {
    FailureCode.TOO_SUBTLE: FailureCode.OVERCORRECTED,
    FailureCode.OVERCORRECTED: FailureCode.TOO_SUBTLE,
}
_LESSONS: Mapping[FailureCode, tuple[str, str]] = {
    FailureCode.TOO_SUBTLE: ("The finding must be readily apparent.", "Leave no residual abnormality."),
    FailureCode.OVERCORRECTED: ("Do not exaggerate it.", "Do not alter normal tissue beyond it."),
    FailureCode.WRONG_LOCATION: ("Confine it to this site.", "Change the abnormal area only."),
    FailureCode.NON_TARGET_FINDING: ("Do not introduce any other abnormality.",) * 2,
    FailureCode.DISTORTION: ("Preserve the shape of bones, vessels and organs.",) * 2,
    FailureCode.BLENDING_ARTEFACT: (
        "Blend its margins into the surrounding tissue.",
        "Leave no visible boundary.",
    ),
    FailureCode.HARD_EDGE: ("Blend its margins into the surrounding tissue.", "Leave no visible boundary."),
    FailureCode.REPETITION: ("Do not copy texture from other areas.",) * 2,
    FailureCode.LOST_GRAIN: ("Preserve the noise texture of the image.",) * 2,
    FailureCode.EXCESS_CHANGE: ("Confine the change to the smallest possible area.",) * 2,
}
"""The sentence for each reason, of an addition and of a removal."""


class TemplateWriter:
    """The writer `offline/templates`: puts the finding's data into sentences, without a language model.

    The instruction depends on the task, the image's attributes, the history and the seed, and differs in each round.
    """

    name = "offline/templates"
    fingerprint = VERSION

    async def write(self, request: WriteRequest) -> Reply[str]:
        """Return an instruction for this round; the outcome is always ok."""
        return Reply(write_instruction(request), usage=Usage(served_model=f"{self.name}@{VERSION}"))


def write_instruction(request: WriteRequest) -> str:
    """Write the instruction of this round in plain English.

    The first round chooses place, extent and conspicuity by the seed. Later rounds change the last request as its
    failed criteria suggest; the reasons of all earlier rounds are kept as sentences.
    """
    rng = np.random.default_rng(request.seed)
    direction, finding, image = request.task.direction, request.finding, request.image
    choices = choices_for(finding, image, direction)
    intent = next_intent(request.history, finding, choices, direction, rng)
    lessons = [_LESSONS[code][direction is Direction.REMOVE] for code in _lessons(request.history)]
    written = {attempt.instruction for attempt in request.history}
    for phrasing in range(PHRASINGS):
        text = " ".join((instruction(intent, finding, image, phrasing), *dict.fromkeys(lessons)))
        if text not in written:
            return text
    return f"{text} Request {request.round}."


def instruction(intent: Intent, finding: Finding, image: SourceImage, phrasing: int = 0) -> str:
    """Return the instruction for an intent: the command, signs or tissue to restore, and what must not change.

    Signs that would change the meaning of the command are omitted. `phrasing` is as for `compose`.
    """
    command = compose(intent, finding, phrasing=phrasing).removesuffix(".")
    joint = ". Restore " if intent.direction is Direction.REMOVE else ", with "
    for most in (2, 1):
        text = f"{command}{joint}{signs_of(intent, finding, image, most)}. {UNCHANGED}"
        if read_instruction(text, (finding,)) == intent:
            return text
    return f"{command}. {UNCHANGED}"


def signs_of(intent: Intent, finding: Finding, image: SourceImage, most: int = 2) -> str:
    """Return the first `most` signs on this image, or tissues that a removal restores, joined by "and"."""
    if intent.direction is Direction.REMOVE:
        lines = finding.restores
    else:
        lines = lines_on(finding.signs, finding.zones, image, intent.zone)
    shown = lines[:most]
    return (", and " if any(" and " in line for line in shown) else " and ").join(shown)


@dataclass(frozen=True, slots=True)
class Choices:
    """Possible (side, zone) pairs and steps of extent and conspicuity for a finding and image."""

    places: tuple[tuple[str | None, str | None], ...]
    extents: tuple[str, ...]
    conspicuities: tuple[str, ...]


def choices_for(finding: Finding, image: SourceImage, direction: Direction) -> Choices:
    """List the possible places, extents and degrees of conspicuity of an edit; for a removal only extents."""
    extents = EXTENTS if finding.support != "diffuse" else ()
    if direction is not Direction.ADD:
        return Choices(((None, None),), extents, ())
    sides: tuple[str | None, ...] = sides_on(finding, image) or (None,)
    zones: tuple[str | None, ...] = zones_on(finding, image) or (None,)
    places = tuple((side, zone) for side in sides for zone in zones)
    return Choices(places, extents, CONSPICUITIES if finding.support != "warp" else ())


def next_intent(
    history: Sequence[Attempt],
    finding: Finding,
    choices: Choices,
    direction: Direction,
    rng: np.random.Generator,
) -> Intent:
    """Choose the next request: after `history` the last one, changed as its failed criteria suggest; else a random one.

    A refinement keeps the place of the last round, unless that round had no image. A request is not repeated while
    another one is possible. `choices` are those of `choices_for`.
    """
    if not history:
        side, zone = choices.places[int(rng.integers(len(choices.places)))]
        extent, conspicuity = (str(rng.choice(steps, p=WEIGHTS)) for steps in (EXTENTS, CONSPICUITIES))
        adding = direction is Direction.ADD
        return Intent(
            finding.name, direction, side, zone,
            extent if adding and choices.extents else None, conspicuity if choices.conspicuities else None,
        )  # fmt: skip
    tried = [
        replace(read_instruction(attempt.instruction, (finding,)), finding=finding.name, direction=direction)
        for attempt in history
    ]
    codes = failed_codes(history[-1])
    wanted = _answered(tried[-1], codes, choices)
    if history[-1].verdict is None:  # it cannot be drawn at that place
        wanted = _elsewhere(wanted, tried, choices, rng)
    if wanted not in tried:
        return wanted
    return next((other for other in _others(wanted, choices, rng) if other not in tried), wanted)


def failed_codes(attempt: Attempt) -> set[FailureCode]:
    """Return an attempt's failure codes, or a failed criterion's usual code; empty without a verdict."""
    codes: set[FailureCode] = set()
    if attempt.verdict is not None:
        for criterion, result in attempt.verdict.observations.criteria.items():
            if result.passed is False:
                known = {FailureCode(code) for code in result.codes if code in set(FailureCode)}
                codes |= known or ({_IMPLIED[criterion]} if criterion in _IMPLIED else set())
    return codes


def _lessons(history: Sequence[Attempt]) -> list[FailureCode]:
    """Reasons of all earlier failures; of "too subtle" and "overcorrected" only the last."""
    kept: set[FailureCode] = set()
    for attempt in history:
        codes = failed_codes(attempt)
        kept -= {_OPPOSITE[code] for code in codes if code in _OPPOSITE}
        kept |= codes
    return [code for code in FailureCode if code in kept]


def _answered(last: Intent, codes: Collection[FailureCode], choices: Choices) -> Intent:
    wanted = last
    blended = {FailureCode.BLENDING_ARTEFACT, FailureCode.HARD_EDGE} & set(codes)
    if FailureCode.TOO_SUBTLE in codes:
        wanted = _step(wanted, choices, 1)
    elif FailureCode.OVERCORRECTED in codes or blended:
        wanted = _step(wanted, choices, -1)
    if FailureCode.EXCESS_CHANGE in codes and choices.extents:
        wanted = replace(wanted, extent=_next(EXTENTS, wanted.extent, -1))
    return wanted


def _step(wanted: Intent, choices: Choices, by: int) -> Intent:
    """More or less conspicuous, and where that is at its end, larger or smaller."""
    end = CONSPICUITIES[-1 if by > 0 else 0]
    if choices.conspicuities and wanted.conspicuity != end:
        return replace(wanted, conspicuity=_next(CONSPICUITIES, wanted.conspicuity, by))
    return replace(wanted, extent=_next(EXTENTS, wanted.extent, by)) if choices.extents else wanted


def _next(scale: Sequence[str], value: str | None, by: int) -> str:
    """The neighbouring step of a scale; nothing counts as the middle."""
    position = scale.index(value) if value in scale else 1
    return scale[min(max(position + by, 0), len(scale) - 1)]


def _elsewhere(last: Intent, tried: Sequence[Intent], choices: Choices, rng: np.random.Generator) -> Intent:
    """Return a place that was not requested yet, on the same side if there is one."""
    used = {(intent.side, intent.zone) for intent in tried}
    fresh = [place for place in choices.places if place not in used]
    options = [place for place in fresh if place[0] == last.side] or fresh
    if not options:
        return last
    side, zone = options[int(rng.integers(len(options)))]
    return replace(last, side=side, zone=zone)


def _others(wanted: Intent, choices: Choices, rng: np.random.Generator) -> Iterator[Intent]:
    """Requests near the wanted one: the middle of its scales, other looks, then another place."""
    middle = (steps[1] if steps else None for steps in (choices.extents, choices.conspicuities))
    yield replace(wanted, extent=next(middle), conspicuity=next(middle))
    for extent in rng.permutation(np.array(choices.extents, dtype=str)):
        yield replace(wanted, extent=str(extent))
    for conspicuity in rng.permutation(np.array(choices.conspicuities, dtype=str)):
        yield replace(wanted, conspicuity=str(conspicuity))
    for index in rng.permutation(len(choices.places)):
        side, zone = choices.places[int(index)]
        yield replace(wanted, side=side, zone=zone)
