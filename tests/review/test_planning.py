"""`plantain review plan`: numbers, the page, a pilot, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.commands import json_of, refused
from plantain.review.study import ReaderTask
from review.study_on_paper import MODELS, read_all, small_study


def test_plan_says_power_hours_and_the_smallest_design(tmp_path: Path):
    design = ["--readers", "5", "--cases", "100", "--effect", "0.15"]
    found = json_of("review", "plan", *design, "--to", tmp_path / "plan.html")
    assert 0.7 < found["power"] < 0.85 and 0.03 < found["type_1"] < 0.065
    assert found["hours"] == pytest.approx(5 * 100 * 2 * 20 / 3600)
    assert found["smallest"]["power"] >= 0.8
    sizes = {(row["readers"], row["cases"]): row["power"] for row in found["table"]}
    assert sizes[5, 100] == found["power"] < sizes[8, 100]
    page = (tmp_path / "plan.html").read_text()
    assert "<svg" in page and "http" not in page.split("</style>")[1].replace("http://www.w3.org", "")
    split = json_of("review", "plan", "--readers", "6", "--cases", "90", "--groups", "3", "--effect", "0.15")
    assert split["groups"] == 3 and [d["groups"] for d in split["split_plot"]] == [2, 3]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["--effect", "0.6"],
            "--base-rate 0.6: both rates must be between 0 and 1; with the effect it is 1.2",
        ),
        (["--effect", "0"], "--effect 0: give a difference other than 0"),
        (["--effect", "0.1", "--sd", "2", "--base-rate", "0.5"], "the variances come from one of them"),
        (["--effect", "0.1", "--groups", "4"], "--groups 4: 5 readers and 100 cases in 4 groups"),
        (["--effect", "0.1", "--study", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_plan_refuses_in_one_line(words: list[str], line: str):
    assert line in refused("review", "plan", *words)


def test_a_study_that_was_read_is_a_pilot(tmp_path: Path):
    """Reader i sees the models 1, 2, 3, 4 points apart in every case: the variance of those is 5/3, the rest is 0."""
    study = small_study(tmp_path / "s", ReaderTask.RATE, cases=4, models=MODELS[:2])
    read_all(
        study,
        4,
        lambda reader, block, _, slots: {
            "scores": dict.fromkeys(dict(block.criteria), 3 + reader if slots == [MODELS[0]] else 2)
        },
    )
    found = json_of("review", "plan", "--effect", "1", "--study", str(study.folder))
    assert found["components_from"].startswith("from the pilot")
    assert found["components"] == pytest.approx({"reader": 5 / 3, "case": 0.0, "rest": 0.0})
    one = small_study(tmp_path / "one", ReaderTask.PAIR, cases=2)
    assert "no accept or rate block" in refused("review", "plan", "--effect", "1", "--study", one.folder)
