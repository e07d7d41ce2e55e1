from __future__ import annotations

import itertools

import pytest

from plantain.records import Criterion, CriterionResult, Direction, Observations
from plantain.rubrics import MED_BANANA, decide, majority


def observed(*passed: bool | None, opinion: bool | None = None) -> Observations:
    results = {c: CriterionResult(p) for c, p in zip(Criterion, passed, strict=True)}
    return Observations(results, {"has_disease": bool(passed[0])}, opinion)


@pytest.mark.parametrize("passed", list(itertools.product([True, False], repeat=4)))
def test_decide_every_combination(passed: tuple[bool, ...]) -> None:
    # weights of Med-Banana-50K, 4.1: compliance .40, structure .25, realism .20, fidelity .15
    score = sum(w for w, p in zip((0.40, 0.25, 0.20, 0.15), passed, strict=True) if p)
    verdict = decide(observed(*passed), MED_BANANA, judge="j", policy="all-pass", threshold=0.7)
    assert verdict.score == pytest.approx(score)
    assert verdict.qualified_all_pass == all(passed) == verdict.qualified
    assert verdict.qualified_weighted == (round(score, 6) >= 0.7)


@pytest.mark.parametrize(
    ("passed", "all_pass", "weighted"),
    [
        ((None, True, True, True), None, None),  # 0.60 for certain, up to 1.00
        (
            (True, True, True, None),
            None,
            None,
        ),  # an open criterion qualifies nothing, although 0.85 is certain
        ((None, False, True, True), False, None),  # up to 0.75
        ((False, None, True, True), False, False),  # at most 0.60
    ],
)
def test_decide_leaves_open_what_an_unscored_criterion_could_change(
    passed: tuple[bool | None, ...], all_pass: bool | None, weighted: bool | None
) -> None:
    verdict = decide(observed(*passed), MED_BANANA, judge="j", policy="all-pass", threshold=0.7)
    assert (verdict.qualified_all_pass, verdict.qualified_weighted) == (all_pass, weighted)
    assert verdict.score is None and verdict.qualified is all_pass


def test_decide_ignores_the_judges_own_opinion() -> None:
    verdict = decide(
        observed(False, False, False, False, opinion=True),
        MED_BANANA,
        judge="j",
        policy="all-pass",
        threshold=0.7,
    )
    assert not verdict.qualified and verdict.observations.opinion is True


def test_majority_of_three_and_tie_of_two() -> None:
    good, bad = observed(True, True, True, True), observed(False, True, True, True)
    assert (
        majority([("a", good), ("b", good), ("c", bad)], MED_BANANA, Direction.ADD)
        .criteria[Criterion.INSTRUCTION_COMPLIANCE]
        .passed
    )
    assert (
        not majority([("a", good), ("b", bad)], MED_BANANA, Direction.ADD)
        .criteria[Criterion.INSTRUCTION_COMPLIANCE]
        .passed
    )


def reported(has: bool, other: bool, own: bool) -> Observations:
    """Everything passes; the facts are the judge's."""
    facts = {"has_disease": has, "other_disease": other, "implant": own}
    return Observations(dict.fromkeys(Criterion, CriterionResult(True)), facts)


@pytest.mark.parametrize("direction", Direction)
def test_a_tie_over_a_fact_counts_against_the_edit(direction: Direction) -> None:
    yes, no = ("a", reported(True, True, True)), ("b", reported(False, False, False))
    for panel in itertools.permutations((yes, no)):
        facts = majority(panel, MED_BANANA, direction).facts
        # of a removal the finding is not certified as gone, of an addition not as there
        assert facts == {"has_disease": direction is Direction.REMOVE, "other_disease": True}
    facts = majority([yes, no, no], MED_BANANA, direction).facts
    assert facts == {"has_disease": False, "other_disease": False, "implant": False}
    assert majority([yes, no, yes, no], MED_BANANA, direction).facts["other_disease"]
