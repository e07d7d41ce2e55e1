"""The published judge of Med-Banana-50K: its JSON as section 4.2 prints it, and the verdict derived from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plantain.models.hosted.answers import Unreadable
from plantain.models.hosted.reports import read_report, report_schema
from plantain.pipeline.recipe import Recipe
from plantain.records import Direction, InputError, Rubric
from plantain.rubrics import decide, rubric_named

KEYS = ("has_disease", "structure_reasonable", "looks_realistic", "qualified", "reason")
"""Section 4.2, in its order."""


@pytest.fixture
def published() -> Rubric:
    return rubric_named("med-banana-published")


def answer(*flags: bool, reason: str = "The edit adds it.") -> str:
    return json.dumps(dict(zip(KEYS, (*flags, reason), strict=True)))


@pytest.mark.parametrize(
    ("flags", "direction", "passed", "qualified"),
    [
        ((True, True, True, True), Direction.ADD, [True, True, True, True], True),
        # Section 4.1: a removal complies if the image is free of the finding.
        ((False, True, True, True), Direction.REMOVE, [True, True, True, True], True),
        ((True, True, True, False), Direction.REMOVE, [False, True, True, False], False),
        # Fidelity has no boolean of its own: only `qualified` shows that it failed.
        ((True, True, True, False), Direction.ADD, [True, True, True, False], False),
        ((True, False, True, False), Direction.ADD, [True, False, True, False], False),
    ],
)
def test_the_printed_json_is_read_and_has_no_weighted_score(
    published: Rubric, flags: tuple[bool, ...], direction: Direction, passed: list[bool], qualified: bool
) -> None:
    seen = read_report(answer(*flags), published, direction)
    assert [seen.criteria[c.name].passed for c in published.criteria] == passed
    assert seen.facts == {"has_disease": flags[0]} and seen.opinion is flags[3]
    assert seen.reason == "The edit adds it."
    verdict = decide(seen, published, judge="j", policy="all-pass", threshold=0.7)
    assert verdict.qualified is qualified
    assert (verdict.score, verdict.qualified_weighted) == (None, None)


def test_the_schema_requires_exactly_the_printed_keys(published: Rubric) -> None:
    properties = report_schema(published)["properties"]
    assert isinstance(properties, dict) and sorted(properties) == sorted(KEYS)


def test_a_missing_boolean_is_unreadable(published: Rubric) -> None:
    with pytest.raises(Unreadable, match="looks_realistic is missing"):
        read_report('{"has_disease": true, "structure_reasonable": true, "qualified": true}', published)


def test_a_recipe_can_name_the_published_rubric_but_not_weigh_it(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    text = (
        'name = "r"\nrubric = "med-banana-published"\n[data]\ncatalogue = "c"\n[loop]\npolicy = "all-pass"\n'
    )
    recipe.write_text(text)
    assert Recipe.load(recipe).judged_by.name == "med-banana-published"
    recipe.write_text(text.replace("all-pass", "weighted"))
    with pytest.raises(InputError, match=r"r\.toml: loop\.policy: 'weighted' needs weights"):
        Recipe.load(recipe)
