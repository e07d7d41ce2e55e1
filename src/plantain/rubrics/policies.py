"""Policies: from a judge's observations to a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from plantain.records import CriterionResult, Direction, Observations, Rubric, RubricCriterion, Verdict

POLICIES = ("all-pass", "weighted")


def decide(
    observations: Observations, rubric: Rubric, *, judge: str, policy: str, threshold: float
) -> Verdict:
    """Compute the decision of both policies; `policy` selects the one that counts.

    Unscored criteria leave a decision open (None) unless the scored ones already exclude the edit: under "all-pass" if
    one of them failed, under "weighted" if the score stays below `threshold` even with full marks for the open ones.

    Args:
        observations: one judge's report; must contain every criterion of the rubric.
        policy: "all-pass" (Med-Banana-50K, 4.1) or "weighted" (2.3: score at or above `threshold`).
        threshold: in [0, 1]; the paper uses about 0.7.

    Returns:
        The verdict; its score is the sum of weight times share, in [0, 1]: a criterion that passed has the share 1,
        one that failed 0, a number its place on the scale. None if a criterion is unscored or no weights apply.

    Raises:
        ValueError: unknown policy, or a criterion is missing.
    """
    missing = [c.name for c in rubric.criteria if c.name not in observations.criteria]
    if missing:
        raise ValueError(f"judge {judge} left out {', '.join(missing)}")
    shares = [(c.weight, c.share(observations.criteria[c.name])) for c in rubric.criteria]
    most = round(sum(weight * (1.0 if share is None else share) for weight, share in shares), 6)
    score = None if not rubric.weighted or any(share is None for _, share in shares) else most
    passed = [observations.criteria[c.name].passed for c in rubric.criteria]
    all_pass = False if False in passed else None if None in passed else True
    weighted = None if not rubric.weighted or (score is None and most >= threshold) else most >= threshold
    decisions = {"all-pass": all_pass, "weighted": weighted}
    if policy not in decisions:
        raise ValueError(f"policy {policy!r}: choose one of {', '.join(POLICIES)}")
    return Verdict(judge, observations, all_pass, weighted, score, decisions[policy])


def majority(panel: Sequence[tuple[str, Observations]], rubric: Rubric, direction: Direction) -> Observations:
    """Return one report of a panel: a criterion passes if more than half of the panel passes it; numbers by median.

    A tie fails. A judge that left a criterion unscored has no vote on it; a criterion without any score is unscored.
    Evidence and codes of the judges who agree with the result are joined.

    A tie over a fact counts against the edit: a finding to be removed is seen, one to be added unseen, and another
    one has appeared. A tie over a fact of another rubric is left out.

    Args:
        panel: each judge's name and report.
        rubric: of all of them.
        direction: of the edit.
    """
    if not panel:
        raise ValueError("a panel needs at least one judge")
    opinions = [o.opinion for _, o in panel if o.opinion is not None]
    return Observations(
        criteria={
            c.name: _together([o.criteria[c.name] for _, o in panel], c, rubric) for c in rubric.criteria
        },
        facts=_facts_together([o.facts for _, o in panel], direction),
        opinion=_more_than_half(opinions) if opinions else None,
        reason=" | ".join(f"{name}: {o.reason}" for name, o in panel),
        differences=" | ".join(f"{name}: {o.differences}" for name, o in panel if o.differences),
    )


def unfavourable(direction: Direction) -> dict[str, bool]:
    """Return, for each fact that counts for or against an edit, the answer that counts against it."""
    return {"has_disease": direction is Direction.REMOVE, "other_disease": True}


def _facts_together(reports: Sequence[Mapping[str, bool]], direction: Direction) -> dict[str, bool]:
    against = unfavourable(direction)
    joint = {}
    for name in dict.fromkeys(name for facts in reports for name in facts):
        votes = [facts[name] for facts in reports if name in facts]
        if 2 * sum(votes) != len(votes):
            joint[name] = _more_than_half(votes)
        elif name in against:
            joint[name] = against[name]
    return joint


def _together(results: list[CriterionResult], criterion: RubricCriterion, rubric: Rubric) -> CriterionResult:
    value: float | None = None
    if criterion.scale is None:
        votes = [r for r in results if r.passed is not None]
        if not votes:
            return CriterionResult(None, evidence=" | ".join(r.evidence for r in results if r.evidence))
        results = votes
        passed: bool | None = _more_than_half([bool(r.passed) for r in votes])
    else:
        values = [r.value for r in results if r.value is not None]
        value = float(median(values)) if 2 * len(values) > len(results) else None
        passed = None if value is None else rubric.passes(criterion.name, value)
    agreeing = [r for r in results if r.passed == passed]
    codes = tuple(dict.fromkeys(code for r in agreeing for code in r.codes))
    evidence = " | ".join(r.evidence for r in agreeing if r.evidence)
    return CriterionResult(passed, len(agreeing) / len(results), codes, evidence, value)


def _more_than_half(votes: Sequence[bool]) -> bool:
    return 2 * sum(votes) > len(votes)
