"""A judge's scores out of its answer: exactly the JSON asked for, or what its words plainly say, or nothing."""

from __future__ import annotations

import json

import pytest

from plantain.models.hosted.answers import Unreadable
from plantain.models.hosted.reports import Declined, Incomplete, read_report, report_schema
from plantain.rubrics import MEDEBENCH


def answer(ea: object = 8, cp: object = 9, vq: object = 7, **more: object) -> dict[str, object]:
    scores = {"editing_accuracy": ea, "context_preservation": cp, "visual_quality": vq}
    said = {name: {"reason": f"why {name}", "score": score} for name, score in scores.items()}
    return {"differences": "A mole is gone.", **said, **more}


def test_the_answer_asked_for_is_read_with_its_words() -> None:
    report = read_report(json.dumps(answer()), MEDEBENCH)
    assert [report.criteria[c.name].value for c in MEDEBENCH.criteria] == [8.0, 9.0, 7.0]
    assert report.differences == "A mole is gone."
    assert report.reason.startswith("EA: why editing_accuracy CP: why")


@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "Here you are:\n{}\nThat is all."])
def test_fences_and_prose_around_it_do_no_harm(frame: str) -> None:
    report = read_report(frame.replace("{}", json.dumps(answer())), MEDEBENCH)
    assert report.criteria["editing_accuracy"].value == 8.0


def test_words_are_read_where_there_is_no_json() -> None:
    lines = ["The mole is gone.", "**Editing Accuracy:** 8/10", "**Contextual Preservation:** [9]/10"]
    text = "\n".join([*lines, "Visual Quality - 7 out of 10"])
    report = read_report(text, MEDEBENCH)
    assert (report.criteria["editing_accuracy"].value, report.criteria["visual_quality"].value) == (8.0, 7.0)
    assert "The mole is gone" in report.reason


@pytest.mark.parametrize("score", [11, -1, True, None, "high", 85])
def test_a_score_off_the_scale_is_not_taken(score: object) -> None:
    with pytest.raises(Incomplete) as caught:
        read_report(json.dumps(answer(ea=score)), MEDEBENCH)
    assert caught.value.report.criteria["editing_accuracy"].passed is None
    assert caught.value.report.criteria["context_preservation"].value == 9.0, "the other scores are kept"
    assert "editing_accuracy" in str(caught.value)


def test_two_different_reports_are_no_report() -> None:
    with pytest.raises(Incomplete, match="stated twice"):
        read_report(json.dumps(answer()) + "\n" + json.dumps(answer(ea=2)), MEDEBENCH)


def test_a_refusal_is_told_apart_from_a_bad_answer() -> None:
    with pytest.raises(Declined):
        read_report("I'm sorry, I cannot assist with evaluating this image.", MEDEBENCH)
    with pytest.raises(Unreadable) as caught:
        read_report("The edit looks fine.", MEDEBENCH)
    assert not isinstance(caught.value, Declined)


def test_the_schema_asks_for_the_differences_and_reasons_before_the_scores() -> None:
    schema = report_schema(MEDEBENCH)
    assert schema["required"] == [
        "differences",
        "editing_accuracy",
        "context_preservation",
        "visual_quality",
    ]
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties["visual_quality"]["properties"]) == ["reason", "score"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(answer(max_score=5)),
        json.dumps(answer()).replace('"score": 8', '"score": 4, "max": 5'),
        json.dumps(answer()).replace('"score": 8', '"score": 4, "full_marks": 5'),
        f"All scores are out of 5.\n{json.dumps(answer(ea=4))}",
    ],
)
def test_json_of_the_right_form_on_another_scale_is_not_taken(text: str) -> None:
    with pytest.raises(Unreadable, match=r"another (scale|number)"):
        read_report(text, MEDEBENCH)
