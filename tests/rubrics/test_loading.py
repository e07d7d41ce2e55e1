"""A user's own rubric: read, refused with the wrong field, identified by its content, and applied."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from plantain.models.hosted.answers import Unreadable
from plantain.models.hosted.reports import read_report, report_schema
from plantain.records import Criterion, CriterionResult, Direction, InputError, Observations
from plantain.rubrics import (
    MED_BANANA,
    as_text,
    decide,
    digest_of,
    identity_of,
    majority,
    read_rubric,
    rubric_named,
    rubric_of,
)

OWN = """
name = "our-clinic"
version = 2
policy = "weighted"
threshold = 0.6
codes = ["blurred", "misplaced"]
[[criteria]]
name = "done"
weight = 0.5
question = "Was it done?"
[[criteria]]
name = "beauty"
weight = 0.5
scale = [1, 5]
pass_at = 4
question = "How real does it look?"
marks = [[1, "not at all"], [5, "wholly"]]
[facts]
implant = "Is there an implant?"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "own.toml"
    file.write_text(OWN, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("weight = 0.5\nscale", "weight = 0.6\nscale", "rubric our-clinic: weights sum to 1.1, not 1"),
        (
            "scale = [1, 5]",
            "scale = [5, 1]",
            "criteria.beauty.scale: [5, 1] must start with the lower number",
        ),
        ("pass_at = 4", "pass_at = 7", "criteria.beauty.pass_at: 7 is not on its scale"),
        ("scale = [1, 5]", 'scale = "1-5"', "criteria.1.scale"),
        ('"weighted"', '"most"', "policy: 'most'; choose one of all-pass, weighted"),
        ("threshold = 0.6", "threshold = 60", "threshold: 60; from 0 to 1"),
        ('name = "done"', 'name = "Done!"', "'Done!' cannot be a name"),
        ('name = "done"', 'name = "reason"', "'reason' cannot be a name"),
        ("implant =", "beauty =", "each needs a name of its own"),
        ("version = 2", "versoin = 2", "unknown key 'versoin'; did you mean 'version'?"),
        ("pass_at = 4", "pas_at = 4", "'criteria.1.pas_at'; did you mean 'pass_at'?"),
        ("[[criteria]]", "[[criteria]", "is not valid TOML"),
    ],
)
def test_a_wrong_field_is_named_in_one_line(path: Path, before: str, after: str, complaint: str) -> None:
    path.write_text(OWN.replace(before, after), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_rubric(path)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_an_unknown_rubric_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'medebench'"):
        rubric_named("medebanch")
    with pytest.raises(InputError, match="No such file"):
        rubric_named(str(tmp_path / "none.toml"))


def test_own_rubrics_are_identified_by_content_and_built_in_ones_by_version(path: Path) -> None:
    own = read_rubric(path)
    assert rubric_of(as_text(own)) == own
    assert identity_of(MED_BANANA) == ["med-banana", 1]
    assert identity_of(own) == ["our-clinic", 2, digest_of(own)]
    disguised = replace(own, name="med-banana", version=1)
    assert len(identity_of(disguised)) == 3, "a name of ours is not enough"
    path.write_text(OWN.replace("Was it done?", "Was it done at all?"), encoding="utf-8")
    assert digest_of(read_rubric(path)) != digest_of(own)
    path.write_text(f"# a note\n{OWN}", encoding="utf-8")
    assert digest_of(read_rubric(path)) == digest_of(own), "the content counts, not the layout of the file"


def seen(done: bool, beauty: float | None) -> Observations:
    number = CriterionResult(None if beauty is None else beauty >= 4, value=beauty)
    return Observations({"done": CriterionResult(done), "beauty": number}, {"implant": True})


@pytest.mark.parametrize(
    ("done", "beauty", "score", "all_pass", "weighted"),
    [
        # 0.5 * done + 0.5 * (beauty - 1) / 4, by hand; 0.6 is the threshold
        (True, 5.0, 1.0, True, True),
        (True, 4.0, 0.875, True, True),
        (True, 2.0, 0.625, False, True),
        (True, 1.0, 0.5, False, False),
        (False, 5.0, 0.5, False, False),
        (True, None, None, None, None),  # undecided: from 0.5 to 1
    ],
)
def test_numbers_count_by_their_position_on_the_scale(
    path: Path,
    done: bool,
    beauty: float | None,
    score: float | None,
    all_pass: bool | None,
    weighted: bool | None,
) -> None:
    own = read_rubric(path)
    verdict = decide(seen(done, beauty), own, judge="j", policy=own.policy, threshold=own.threshold)
    assert (verdict.score, verdict.qualified_all_pass, verdict.qualified) == (score, all_pass, weighted)


def test_a_panels_number_is_the_median_and_needs_more_than_half(path: Path) -> None:
    own = read_rubric(path)
    three = [("a", seen(True, 5.0)), ("b", seen(True, 2.0)), ("c", seen(False, 4.0))]
    joint = majority(three, own, Direction.ADD)
    assert (joint.criteria["beauty"].value, joint.criteria["beauty"].passed) == (4.0, True)
    assert joint.facts == {"implant": True}
    half = majority([("a", seen(True, 5.0)), ("b", seen(True, None))], own, Direction.ADD)
    assert (half.criteria["beauty"].value, half.criteria["beauty"].passed) == (None, None)


def test_schema_and_parsing_follow_the_rubric(path: Path) -> None:
    own = read_rubric(path)
    schema = report_schema(own)
    assert schema["required"] == ["done", "beauty", "implant", "reason", "qualified"]
    done = '"done": {"evidence": "yes", "codes": ["blurred", "odd"], "passed": false, "confidence": 0.5}'
    rest = '"implant": false, "reason": "so", "qualified": true'
    report = read_report(f'{{{done}, "beauty": {{"reason": "fine", "codes": [], "score": 4}}, {rest}}}', own)
    assert report.criteria["done"] == CriterionResult(False, 0.5, ("blurred",), "yes [other codes: odd]")
    assert report.criteria["beauty"] == CriterionResult(True, None, (), "fine", 4.0)
    assert (report.facts, report.opinion) == ({"implant": False}, True)
    with pytest.raises(Unreadable, match=r"beauty\.score must be a whole number from 1 to 5"):
        read_report(f'{{{done}, "beauty": {{"reason": "", "codes": [], "score": 6}}, {rest}}}', own)
    with pytest.raises(Unreadable, match="implant is missing"):
        read_report(f'{{{done}, "beauty": {{"score": 4}}, "reason": "so"}}', own)


def observed(*passed: bool | None, opinion: bool | None = None) -> Observations:
    results = {c: CriterionResult(p) for c, p in zip(Criterion, passed, strict=True)}
    return Observations(results, {"has_disease": bool(passed[0])}, opinion)


@pytest.mark.parametrize("passed", list(itertools.product([True, False], repeat=4)))
def test_decide_every_combination(passed: tuple[bool, ...]) -> None:
    # weights of Med-Banana-50K, 4.1: compliance .40, structure .25, realism .20, fidelity .15
    score = sum(w for w, p in zip((0.40, 0.25, 0.20, 0.15), passed, strict=True) if p)
    # the judge's own opinion, here the opposite, does not count
    report = observed(*passed, opinion=not all(passed))
    verdict = decide(report, MED_BANANA, judge="j", policy="all-pass", threshold=0.7)
    assert verdict.score == pytest.approx(score)
    assert verdict.qualified_all_pass == all(passed) == verdict.qualified
    assert verdict.qualified_weighted == (round(score, 6) >= 0.7)


@pytest.mark.parametrize(
    ("passed", "all_pass", "weighted"),
    [
        ((None, True, True, True), None, None),  # 0.60 for certain, up to 1.00
        # an open criterion qualifies nothing, although 0.85 is certain
        ((True, True, True, None), None, None),
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


def test_majority_of_three_and_tie_of_two() -> None:
    good, bad = ("a", observed(True, True, True, True)), ("b", observed(False, True, True, True))
    for panel, passed in (((good, good, bad), True), ((good, bad), False)):
        joint = majority(panel, MED_BANANA, Direction.ADD)
        assert joint.criteria[Criterion.INSTRUCTION_COMPLIANCE].passed is passed


def reported(has: bool, other: bool, own: bool) -> Observations:
    """Return a report in which everything passes; the facts are the judge's."""
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
