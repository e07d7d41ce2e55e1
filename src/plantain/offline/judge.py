"""The instrument judge: measures an edit from its two images and its instruction. An instrument, not an expert."""

from __future__ import annotations

import cv2

from plantain.offline.instruments.evidence import Evidence, anatomy_of, measure
from plantain.offline.instruments.handling import handled
from plantain.offline.instruments.pair import pair_of
from plantain.offline.instruments.presentation import presentation_of
from plantain.offline.judge_criteria import checks_of, result_of
from plantain.offline.language import Intent, read_instruction
from plantain.offline.scale import MEASURED, scale_encoded
from plantain.offline.workers import compute
from plantain.pixels.decode import BadImage, decode
from plantain.records import (
    Criterion,
    CriterionResult,
    Direction,
    Finding,
    InputError,
    Observations,
    Outcome,
    OutcomeKind,
    Rubric,
    SourceImage,
    Usage,
)
from plantain.roles import JudgeRequest, Reply, failed

VERSION = "9"


class InstrumentJudge:
    """`offline/instruments`: classical measurements against stated thresholds; no learned weights, no expertise.

    It measures Med-Banana's four criteria, which pass or fail, or MedEBench's three as numbers, on whatever scale a
    rubric has, and repeats itself exactly, whatever the seed.
    """

    name = "offline/instruments"
    fingerprint = VERSION

    def fingerprint_by(self, rubric: Rubric) -> str:
        """Its version. Raises InputError for a rubric with a criterion or fact that no instrument measures."""
        scales = all(c.name in MEASURED and c.scale is not None for c in rubric.criteria)
        for criterion in rubric.criteria:
            if not scales and (criterion.name not in set(Criterion) or criterion.scale is not None):
                raise InputError(
                    f"models.judge: {self.name} cannot judge by the rubric {rubric.name!r}: it measures either "
                    f"{', '.join(Criterion)}, which pass or fail, or {', '.join(MEASURED)} as numbers, and not "
                    f"{criterion.name}"
                )
        known = () if scales else ("has_disease", "other_disease")
        if unknown := [name for name in rubric.facts if name not in known]:
            raise InputError(
                f"models.judge: {self.name} cannot tell {unknown[0]} of the rubric {rubric.name!r}"
            )
        return f"scale {VERSION}" if scales else VERSION

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Measures the edit; `malformed` when the edited image cannot be compared with the original."""
        by_scales = self.fingerprint_by(request.rubric) != VERSION
        if not by_scales and request.finding is None:
            return failed(Outcome(OutcomeKind.NOT_APPLICABLE, "no finding to measure the edit against"))
        observed = await compute("judge", _judged, request, by_scales)
        usage = Usage(served_model=self.name if by_scales else f"{self.name}@{VERSION}")
        if isinstance(observed, Outcome):
            return failed(observed, usage)
        return Reply(observed, usage=usage)


def _judged(request: JudgeRequest, by_scales: bool) -> Observations | Outcome:
    """Decodes, measures and reports; runs in a worker."""
    before, after, text = request.original.data, request.edited.data, request.instruction
    if by_scales or request.finding is None:
        truth = request.truth.data if request.truth else None
        return scale_encoded(
            before, after, text, request.image, request.finding, request.direction, request.rubric, truth
        )
    return judge_encoded(
        before, after, text, request.image, request.finding, request.direction, request.rubric
    )


def judge_encoded(
    original: bytes,
    edited: bytes,
    instruction: str,
    image: SourceImage,
    finding: Finding,
    direction: Direction,
    rubric: Rubric,
) -> Observations | Outcome:
    """Decodes both images, measures and reports on the criteria of the rubric.

    Args:
        original, edited: files of the two images.
        instruction: what the editor was told; side, zone and extent are read from it.
        image: what is known of the original.
        finding: the finding asked for.
        direction: add or remove.
        rubric: whose criteria are reported.
    """
    presentation = presentation_of(finding, image)
    try:
        before, after = decode(original), decode(edited)
        if before.shape != after.shape:
            raise ValueError(f"original {before.shape[:2]} and edited {after.shape[:2]} differ in size")
        same, back, handling = handled(before, after, whole_field=presentation.parts == "diffuse")
        # On the original as it is, so that the anatomy does not hang on what carries no meaning.
        anatomy = anatomy_of(before if direction is Direction.ADD else back, image)
        pair = pair_of(same, back, image.modality)
    except (BadImage, ValueError, cv2.error) as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))
    intent = read_instruction(instruction, [finding])
    evidence = measure(
        pair, image, presentation, direction, side=intent.side, handling=handling, anatomy=anatomy
    )
    return observations_of(evidence, intent, direction, rubric)


def observations_of(evidence: Evidence, intent: Intent, direction: Direction, rubric: Rubric) -> Observations:
    """Reads the criteria off the evidence."""
    checks = checks_of(evidence, intent, direction)
    results = {c.name: result_of(Criterion(c.name), checks) for c in rubric.criteria}
    opinion = all(result.passed for result in results.values())
    # A finding in the wrong place or of the wrong sign is not the target; a removal that left it shows it
    # still.
    compliant = bool(result_of(Criterion.INSTRUCTION_COMPLIANCE, checks).passed)
    facts = {
        "has_disease": compliant if direction is Direction.ADD else not compliant,
        "other_disease": any(not stray.mark and stray.area > 900 for stray in evidence.strays),
    }
    return Observations(
        criteria=results,
        facts={name: facts[name] for name in rubric.facts},
        opinion=opinion,
        reason=_reason(results, evidence),
    )


def _reason(results: dict[str, CriterionResult], evidence: Evidence) -> str:
    """The evidence in one paragraph, with what the instruments could not see."""
    lines = ["Instrument reading, not an expert's opinion."]
    for criterion, result in results.items():
        word = {True: "holds", False: "fails", None: "is left open"}[result.passed]
        lines.append(f"{criterion.replace('_', ' ').capitalize()} {word}: {result.evidence}.")
    if evidence.handling.words:
        lines.append(f"The picture {evidence.handling.words}; that was taken out first.")
    if evidence.anatomy.notes:
        lines.append(f"Anatomy: {'; '.join(evidence.anatomy.notes)}.")
    return " ".join(lines)
