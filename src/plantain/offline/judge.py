"""The instrument judge: measures an edit from its two images and its instruction. A demonstration, not an expert."""

from __future__ import annotations

import cv2

from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.judging.case import Case, case_of, unmapped
from plantain.offline.judging.checks import result_of
from plantain.offline.judging.compliance import compliance
from plantain.offline.judging.fidelity import fidelity
from plantain.offline.judging.plausibility import plausibility
from plantain.offline.judging.realism import realism
from plantain.offline.language import read_instruction
from plantain.offline.scale import MEASURED, scaled
from plantain.offline.workers import workers
from plantain.pixels.decode import BadImage, decode
from plantain.records import (
    Criterion,
    CriterionResult,
    Direction,
    InputError,
    Observations,
    Outcome,
    OutcomeKind,
    Rubric,
    Usage,
)
from plantain.roles import JudgeRequest, Reply, failed, on_worker

VERSION = "1"

MEASURES = {
    Criterion.INSTRUCTION_COMPLIANCE: compliance,
    Criterion.STRUCTURAL_PLAUSIBILITY: plausibility,
    Criterion.REALISM: realism,
    Criterion.FIDELITY_PRESERVATION: fidelity,
}
PLACED = (Criterion.INSTRUCTION_COMPLIANCE, Criterion.STRUCTURAL_PLAUSIBILITY)
"""Criteria that need the map of the anatomy."""


class InstrumentJudge:
    """The judge `offline/instruments`: compares classical measurements with thresholds; no learned weights.

    It measures Med-Banana's four criteria, which pass or fail, or MedEBench's three as numbers. Its answers do not
    depend on the seed. A criterion that it cannot measure is undecided.
    """

    name = "offline/instruments"
    fingerprint = VERSION

    def fingerprint_by(self, rubric: Rubric) -> str:
        """Return the version of its measurements. Raise InputError for a criterion or fact that it cannot measure."""
        scales = all(c.name in MEASURED and c.scale is not None for c in rubric.criteria)
        for criterion in rubric.criteria:
            if not scales and (criterion.name not in MEASURES or criterion.scale is not None):
                raise InputError(
                    f"models.judge: {self.name} cannot judge by the rubric {rubric.name!r}: it measures either "
                    f"{', '.join(MEASURES)}, which pass or fail, or {', '.join(MEASURED)} as numbers, and not "
                    f"{criterion.name}"
                )
        known = () if scales else ("has_disease", "other_disease")
        if unknown := [name for name in rubric.facts if name not in known]:
            raise InputError(
                f"models.judge: {self.name} cannot tell {unknown[0]} of the rubric {rubric.name!r}"
            )
        return f"scale {VERSION}" if scales else VERSION

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Measure the edit; `malformed` if the images cannot be compared, `not_applicable` without a finding."""
        if self.fingerprint_by(request.rubric) == VERSION and request.finding is None:
            return failed(Outcome(OutcomeKind.NOT_APPLICABLE, "no finding to measure the edit against"))
        observed = await on_worker(workers(), "judge", measured, request)
        usage = Usage(served_model=f"{self.name}@{VERSION}")
        if isinstance(observed, Outcome):
            return failed(observed, usage)
        return Reply(observed, usage=usage)


def measured(request: JudgeRequest) -> Observations | Outcome:
    """Measure an edit by a rubric's criteria; return a `malformed` outcome if the images cannot be compared."""
    image, finding, direction = request.image, request.finding, request.direction
    if finding is None or all(criterion.name in MEASURED for criterion in request.rubric.criteria):
        return scaled(request)
    intent = read_instruction(request.instruction, [finding])
    try:
        before, after = decode(request.original.data), decode(request.edited.data)
        try:
            case, why_not = case_of(before, after, intent, image, finding, direction), ""
        except CannotShow as reason:
            case, why_not = (
                unmapped(before, after, image, finding, added=direction is Direction.ADD),
                str(reason),
            )
    except (BadImage, ValueError, cv2.error) as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))
    found = {criterion: result_of(measure(case)) for criterion, measure in MEASURES.items()}
    if why_not:
        found |= dict.fromkeys(PLACED, CriterionResult(None, evidence=f"cannot tell: {why_not}"))
    results = {c.name: found[Criterion(c.name)] for c in request.rubric.criteria}
    shown = bool(found[Criterion.INSTRUCTION_COMPLIANCE].passed)
    facts = {
        "has_disease": shown if direction is Direction.ADD else not shown,
        "other_disease": case.change is not None
        and any(stray.area > 900 and not stray.mark for stray in case.change.strays),
    }
    return Observations(
        criteria=results,
        facts={name: facts[name] for name in request.rubric.facts},
        opinion=all(result.passed for result in results.values()),
        reason=_reason(results, case),
    )


def _reason(results: dict[str, CriterionResult], case: Case) -> str:
    """The evidence in one paragraph."""
    lines = ["Instrument reading, not an expert's opinion."]
    for criterion, result in results.items():
        word = {True: "passed", False: "failed", None: "undecided"}[result.passed]
        lines.append(f"{criterion.replace('_', ' ').capitalize()} {word}: {result.evidence}.")
    if case.pair.moved != (0, 0):
        lines.append(f"The whole image was moved by {case.pair.moved[0]:+d}, {case.pair.moved[1]:+d} pixels.")
    return " ".join(lines)
