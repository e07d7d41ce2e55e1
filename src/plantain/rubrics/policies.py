"""Policies: from a judge's observations to a decision. The judge never decides; this does."""

from __future__ import annotations

from collections.abc import Sequence

from plantain.records import Criterion, CriterionResult, Observations, Rubric, Verdict

POLICIES = ("all-pass", "weighted")


def decide(
    observations: Observations, rubric: Rubric, *, judge: str, policy: str, threshold: float
) -> Verdict:
    """Computes both policies and lets `policy` decide.

    Args:
        observations: one judge's report; must hold every criterion of the rubric.
        policy: "all-pass" (Med-Banana-50K, 4.1) or "weighted" (2.3: score at or above `threshold`).
        threshold: in [0, 1]; the paper uses about 0.7.

    Returns:
        The verdict; its score is the sum of the weights of the criteria that passed, in [0, 1].

    Raises:
        ValueError: unknown policy, or a criterion is missing.
    """
    missing = [c.name for c in rubric.criteria if c.name not in observations.criteria]
    if missing:
        raise ValueError(f"judge {judge} left out {', '.join(missing)}")
    score = round(sum(c.weight for c in rubric.criteria if observations.criteria[c.name].passed), 6)
    all_pass = all(observations.criteria[c.name].passed for c in rubric.criteria)
    weighted = score >= threshold
    decisions = {"all-pass": all_pass, "weighted": weighted}
    if policy not in decisions:
        raise ValueError(f"policy {policy!r}: choose one of {', '.join(POLICIES)}")
    return Verdict(judge, observations, all_pass, weighted, score, decisions[policy])


def majority(panel: Sequence[tuple[str, Observations]], rubric: Rubric) -> Observations:
    """One report from a panel: each criterion passes when more than half of the panel passes it.

    A tie fails: an edit is not let through by half of its judges. Evidence and codes of the judges who failed a
    criterion are kept side by side.
    """
    if not panel:
        raise ValueError("a panel needs at least one judge")

    def more_than_half(votes: Sequence[bool]) -> bool:
        return 2 * sum(votes) > len(votes)

    criteria: dict[Criterion, CriterionResult] = {}
    for criterion in (c.name for c in rubric.criteria):
        results = [observations.criteria[criterion] for _, observations in panel]
        passed = more_than_half([r.passed for r in results])
        agreeing = [r for r in results if r.passed == passed]
        codes = tuple(dict.fromkeys(code for r in agreeing for code in r.codes))
        evidence = " | ".join(r.evidence for r in agreeing if r.evidence)
        criteria[criterion] = CriterionResult(passed, len(agreeing) / len(results), codes, evidence)
    opinions = [o.opinion for _, o in panel if o.opinion is not None]
    return Observations(
        criteria=criteria,
        has_disease=more_than_half([o.has_disease for _, o in panel]),
        other_disease=more_than_half([o.other_disease for _, o in panel]),
        opinion=more_than_half(opinions) if opinions else None,
        reason=" | ".join(f"{name}: {o.reason}" for name, o in panel),
    )
