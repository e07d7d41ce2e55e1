"""The instrument judge on MedEBench's three scales: measurements from 0 to 10, with their numbers. Not an expert.

What it can measure depends on what it is handed. With the real result, editing accuracy is the share of the way from
the image before to that result; without it, but with a finding of ours, it is what the instruments say of that finding;
with neither there is nothing to hold an edit against, and editing accuracy stays unscored.
"""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np

from plantain.metrics.ssim import masked_ssim
from plantain.offline.checks import Check
from plantain.offline.instruments.evidence import Evidence, measure
from plantain.offline.instruments.pair import ImagePair, blur, grow, pair_of
from plantain.offline.instruments.presentation import Presentation, presentation_of
from plantain.offline.judge_criteria import checks_of
from plantain.offline.language import read_instruction
from plantain.offline.scale_truth import MARGIN, TruthRequest, accuracy, preserved, wanted_of
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode
from plantain.records import (
    BUILD_DIRECTIONS,
    Criterion,
    CriterionResult,
    Direction,
    FailureCode,
    Finding,
    Observations,
    Outcome,
    OutcomeKind,
    Rubric,
    RubricCriterion,
    Score,
    SourceImage,
    unscored,
)

ANYTHING = Presentation("", 0, "many", 1.0, crisp=True)
"""What to expect of a change of which nothing is known."""
BROKEN = 0.6
"""Most that a dimension can have once one of its checks fails; further from its line it falls to 0."""
MOST_CHANGED = 0.5
"""Share of the frame beyond which the output's own change is no longer taken for the edit that was asked for."""
LOST_DETAIL, KEPT_DETAIL = 0.3, 0.85
"""Fine detail of the frame over the original's: at the first value quality is nought, from the second on whole."""
MOST_DETAIL, NOISY_DETAIL = 1.3, 2.5
"""The same for detail that was not there before: noise, ringing, patterns."""


MEASURED = ("editing_accuracy", "context_preservation", "visual_quality")
"""The criteria of which this measures how much holds."""


def scale_encoded(
    previous: bytes,
    edited: bytes,
    text: str,
    image: SourceImage,
    finding: Finding | None,
    direction: Direction,
    rubric: Rubric,
    truth: bytes | None,
) -> Observations | Outcome:
    """Decodes the images, measures and scores; see `JudgeRequest` for the arguments."""
    try:
        before, after = decode(previous), decode(edited)
        real = decode(truth) if truth is not None else None
        pair = pair_of(before, after, image.modality)
        if real is not None and real.shape != before.shape:
            raise ValueError(
                f"the real result {real.shape[:2]} and the image before {before.shape[:2]} differ"
            )
        with np.errstate(invalid="ignore", divide="ignore"):  # a blank output has no spread to divide by
            return measured(pair, real, text, image, finding, direction, rubric)
    except (BadImage, ValueError, cv2.error) as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))


def measured(
    pair: ImagePair,
    truth: Pixels | None,
    text: str,
    image: SourceImage,
    finding: Finding | None,
    direction: Direction,
    rubric: Rubric,
) -> Observations:
    """The numbers of one output.

    Args:
        pair: the image before and the output.
        truth: the real result, of the same size; None when it is to do without.
        text: what was asked for; side, zone and extent are read from it where there is a finding.
        image: what is known of the image before.
        finding, direction: of a benchmark made from a build; None and any direction otherwise.
    """
    known = finding is not None and direction in BUILD_DIRECTIONS
    presentation = presentation_of(finding, image) if finding is not None and known else ANYTHING
    towards = direction if known else Direction.ADD
    intent = read_instruction(text, [finding] if finding is not None else [])
    evidence = measure(pair, image, presentation, towards, side=intent.side if known else None)
    checks = checks_of(evidence, intent, towards)
    if not known:  # photographs repeat themselves: hair, teeth, a background
        checks = [check for check in checks if check.code is not FailureCode.REPETITION]
    wanted = wanted_of(pair.before, truth) if truth is not None else None
    seen: list[str] = ["Instrument reading, not an expert's opinion."]
    if wanted is not None and truth is not None and wanted.aligned:
        ea = accuracy(pair.before, pair.after, truth, wanted)
        seen.append(f"EA: share of the way to the real result, over {wanted.share:.1%} of the frame.")
    elif known:
        ea, reason = _by_checks(checks, Criterion.INSTRUCTION_COMPLIANCE)
        seen.append(f"EA: {reason}.")
    elif wanted is not None and truth is not None:
        ea = accuracy(pair.before, pair.after, truth, wanted)
    else:
        ea = unscored("no real result and no finding to measure the change against")
    cp, reason = _context(pair, evidence, wanted)
    seen.append(f"CP: {reason}.")
    vq, reason = _quality(pair, checks)
    seen.append(f"VQ: {reason}.")
    shares = dict(zip(MEASURED, (ea, cp, vq), strict=True))
    results = {c.name: _on_scale(shares[c.name], c, rubric) for c in rubric.criteria}
    return Observations(results, {}, None, " ".join(seen), _differences(evidence))


def _on_scale(share: Score, criterion: RubricCriterion, rubric: Rubric) -> CriterionResult:
    if share.value is None or criterion.scale is None:
        return CriterionResult(None, evidence=share.reason)
    least, most = criterion.scale
    value = round(least + (most - least) * share.value, 2)
    return CriterionResult(rubric.passes(criterion.name, value), value=value)


def _by_checks(checks: Iterable[Check], *criteria: Criterion) -> tuple[Score, str]:
    """1 where all checks hold; else what the worst of them leaves, by how far it lies from its line."""
    own = [check for check in checks if check.criterion in criteria]
    if not own:
        return unscored("no check applies"), "no check applies"
    worst = min(own, key=_grade)
    return Score(_grade(worst)), worst.text


def _grade(check: Check) -> float:
    return 1.0 if check.passed else BROKEN * (1.0 - check.margin)


def _context(pair: ImagePair, evidence: Evidence, wanted: TruthRequest | None) -> tuple[Score, str]:
    """Preservation outside the change: the real one where it is known, else outside the output's own main change."""
    if np.array_equal(pair.before, pair.after):
        return Score(1.0), "nothing changed"
    if wanted is not None:
        score = preserved(pair.before, pair.after, wanted)
        if score.scored:
            return score, "SSIM outside the change that the real result shows"
    if evidence.presentation.parts == "diffuse":
        return Score(max(0.0, evidence.whole.alike)), "structure of the whole field against the original's"
    main = evidence.change.mask(evidence.main).astype(np.uint8)
    height, width = pair.shape
    around = grow(cv2.resize(main, (width, height), interpolation=cv2.INTER_NEAREST) > 0, MARGIN * pair.unit)
    if float(around.mean()) > MOST_CHANGED:
        around, reason = np.zeros(pair.shape, bool), "SSIM of the whole frame: most of it changed"
    else:
        reason = "SSIM outside the output's main change"
    return Score(max(0.0, masked_ssim(pair.before, pair.after, around).value or 0.0)), reason


def _quality(pair: ImagePair, checks: list[Check]) -> tuple[Score, str]:
    score, reason = _by_checks(checks, Criterion.REALISM)
    detail = _detail(pair)
    lost = (detail - LOST_DETAIL) / (KEPT_DETAIL - LOST_DETAIL)
    gained = (NOISY_DETAIL - detail) / (NOISY_DETAIL - MOST_DETAIL)
    kept = float(np.clip(min(lost, gained), 0.0, 1.0))
    if score.value == 1.0 and kept == 1.0:
        return score, "no seam, lost grain, false colour or burnt place beyond its limit"
    if score.value is not None and score.value <= kept:
        return score, reason
    return Score(kept), f"fine detail of the whole frame at {detail:.2f} of the original's"


def _detail(pair: ImagePair) -> float:
    """Root mean square of the finest octave after over before; 1 where the original has none to speak of."""
    first, second = (
        float(np.sqrt(np.mean(np.square(level - blur(level, 1.0)))))
        for level in (pair.before_level, pair.after_level)
    )
    return second / first if first > 0.2 else 1.0


def _differences(evidence: Evidence) -> str:
    """What changed, in numbers."""
    if not evidence.change.parts:
        return "No visible difference."
    first = evidence.change.parts[0]
    return (
        f"{len(evidence.change.parts)} changed part(s) over {evidence.change.changed_share:.1%} of the field; the "
        f"main change covers {evidence.area} pixels around x {2 * first.x:.0f}, y {2 * first.y:.0f}, by "
        f"{evidence.level:.1f} grey levels, {'brighter' if evidence.balance >= 0 else 'darker'} on the whole."
    )
