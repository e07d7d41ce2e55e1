"""A judge's scores from 0 to 10 out of its answer: strictly from the JSON that was asked for, else as it says them."""

from __future__ import annotations

from plantain.models.hosted.answers import JsonObject, Unreadable, read_object
from plantain.models.hosted.scale_replies import other_scale, parse_scores
from plantain.records import ScaleReport, Score
from plantain.rubrics import ScaleRubric


class Declined(Unreadable):
    """The judge says that it will not score this; asking again is not the way to change its mind."""


class Incomplete(Unreadable):
    """Some scores could be read and others not.

    Attributes:
        report: what could be read, the rest unscored with its reason.
    """

    def __init__(self, message: str, report: ScaleReport) -> None:
        super().__init__(message)
        self.report = report


def scale_schema(rubric: ScaleRubric) -> JsonObject:
    """The JSON schema of the answer, in the subset that both providers' strict modes take.

    The differences come first and each reason before its score, so that a model that writes from left to right looks
    before it scores.
    """
    scored: JsonObject = {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "score": {"type": "integer"}},
        "required": ["reason", "score"],
        "additionalProperties": False,
    }
    properties: JsonObject = {"differences": {"type": "string"}}
    properties |= {dimension.name: scored for dimension in rubric.dimensions}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_scale(text: str, rubric: ScaleRubric) -> ScaleReport:
    """The scores in an answer.

    The JSON that was asked for is taken when it is whole: every score an integer in range. Anything else (other JSON,
    lists, prose) is read by the rules of `scale_replies`, which never guess.

    Args:
        text: the answer.
        rubric: whose dimensions.

    Raises:
        Declined: nothing was scored, and the judge says that it will not.
        Incomplete: not every dimension has a score.
    """
    strict = _strictly(text, rubric)
    if strict is not None:
        return strict
    scores = parse_scores(text)
    report = _report(scores, *_words(text, rubric))
    missing = [f"{name}: {score.reason}" for name, score in scores.items() if not score.scored]
    if not missing:
        return report
    if all(score.reason == "refusal" for score in scores.values()):
        raise Declined("the judge declined to score this picture")
    raise Incomplete("; ".join(missing), report)


def _strictly(text: str, rubric: ScaleRubric) -> ScaleReport | None:
    """The report when the answer is exactly what the schema describes; None for anything else."""
    try:
        found = read_object(text, {dimension.name for dimension in rubric.dimensions})
    except Unreadable:
        return None
    if other_scale(text):
        return None
    scores: dict[str, Score] = {}
    for dimension in rubric.dimensions:
        entry = found.get(dimension.name)
        value = entry.get("score") if isinstance(entry, dict) and set(entry) <= {"reason", "score"} else None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= rubric.most:
            return None
        scores[dimension.name] = Score(float(value))
    return _report(scores, *_said(found, rubric))


def _words(text: str, rubric: ScaleRubric) -> tuple[str, str]:
    """Differences and reasons of an answer that is not what was asked for: all of it, where it is no JSON."""
    try:
        return _said(read_object(text, {dimension.name for dimension in rubric.dimensions}), rubric)
    except Unreadable:
        return "", text.strip()[:4000]


def _said(found: JsonObject, rubric: ScaleRubric) -> tuple[str, str]:
    differences = found.get("differences")
    reasons = []
    for dimension in rubric.dimensions:
        entry = found.get(dimension.name)
        reason = entry.get("reason") if isinstance(entry, dict) else None
        if isinstance(reason, str) and reason.strip():
            reasons.append(f"{dimension.short}: {reason.strip()}")
    return differences.strip() if isinstance(differences, str) else "", " ".join(reasons)


def _report(scores: dict[str, Score], differences: str, reason: str) -> ScaleReport:
    return ScaleReport(
        scores["editing_accuracy"],
        scores["context_preservation"],
        scores["visual_quality"],
        differences,
        reason,
    )
