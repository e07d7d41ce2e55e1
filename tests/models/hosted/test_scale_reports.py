"""A judge's scores as JSON: exactly the object asked for, or nothing."""

from __future__ import annotations

import json

import pytest

from plantain.models.hosted.answers import Unreadable
from plantain.models.hosted.reports import read_report, report_schema
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


@pytest.mark.parametrize("score", [11, -1, True, None, "high", 85, 8.0])
def test_a_score_off_the_scale_is_not_taken(score: object) -> None:
    with pytest.raises(Unreadable, match=r"editing_accuracy\.score must be a whole number from 0 to 10"):
        read_report(json.dumps(answer(ea=score)), MEDEBENCH)


def test_two_different_reports_are_no_report() -> None:
    with pytest.raises(Unreadable, match="2 different reports"):
        read_report(json.dumps(answer()) + "\n" + json.dumps(answer(ea=2)), MEDEBENCH)


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


def test_a_score_beside_another_scale_is_not_taken() -> None:
    text = json.dumps(answer()).replace('"score": 8', '"score": 4, "max": 5')
    with pytest.raises(Unreadable, match="editing_accuracy has other keys than asked for: max"):
        read_report(text, MEDEBENCH)
