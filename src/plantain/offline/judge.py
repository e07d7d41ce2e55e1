"""The instrument judge: measures an edit from its two images and its instruction. An instrument, not an expert."""

from __future__ import annotations

import cv2

from plantain.offline.instruments.evidence import Evidence, measure
from plantain.offline.instruments.pair import pair_of
from plantain.offline.instruments.presentation import presentation_of
from plantain.offline.judge_criteria import checks_of, result_of
from plantain.offline.language import Intent, read_instruction
from plantain.offline.workers import compute
from plantain.pixels.decode import BadImage, decode
from plantain.records import (
    Criterion,
    CriterionResult,
    Direction,
    Finding,
    Observations,
    Outcome,
    OutcomeKind,
    Rubric,
    SourceImage,
    Usage,
)
from plantain.roles import JudgeRequest, Reply, failed

VERSION = "1"


class InstrumentJudge:
    """`offline/instruments`: classical measurements against stated thresholds; no learned weights, no expertise."""

    name = "offline/instruments"
    fingerprint = VERSION

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Measures the edit; `malformed` when the edited image cannot be compared with the original."""
        observed = await compute(
            judge_encoded,
            request.original.data,
            request.edited.data,
            request.instruction,
            request.image,
            request.finding,
            request.direction,
            request.rubric,
        )
        usage = Usage(served_model=f"{self.name}@{VERSION}")
        if isinstance(observed, Outcome):
            return failed(observed, usage)
        return Reply(observed, usage=usage)


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
    try:
        pair = pair_of(decode(original), decode(edited), image.modality)
    except (BadImage, ValueError, cv2.error) as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))
    intent = read_instruction(instruction, [finding])
    presentation = presentation_of(finding, image)
    evidence = measure(pair, image, presentation, direction, side=intent.side)
    return observations_of(evidence, intent, direction, rubric)


def observations_of(evidence: Evidence, intent: Intent, direction: Direction, rubric: Rubric) -> Observations:
    """Reads the criteria off the evidence."""
    checks = checks_of(evidence, intent, direction)
    results = {c.name: result_of(c.name, checks) for c in rubric.criteria}
    opinion = all(result.passed for result in results.values())
    # A finding in the wrong place or of the wrong sign is not the target; a removal that left it shows it
    # still.
    compliant = results[Criterion.INSTRUCTION_COMPLIANCE].passed
    has_disease = compliant if direction is Direction.ADD else not compliant
    return Observations(
        criteria=results,
        has_disease=has_disease,
        other_disease=any(not stray.mark and stray.area > 900 for stray in evidence.strays),
        opinion=opinion,
        reason=_reason(results, evidence),
    )


def _reason(results: dict[Criterion, CriterionResult], evidence: Evidence) -> str:
    """The evidence in one paragraph, with what the instruments could not see."""
    lines = ["Instrument reading, not an expert's opinion."]
    for criterion, result in results.items():
        word = "holds" if result.passed else "fails"
        lines.append(f"{criterion.value.replace('_', ' ').capitalize()} {word}: {result.evidence}.")
    if evidence.anatomy.notes:
        lines.append(f"Anatomy: {'; '.join(evidence.anatomy.notes)}.")
    return " ".join(lines)
