"""Results of a study on paper: planted answers come out, pages are whole."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fakes.commands import json_of, printed, refused
from plantain.cli import main
from plantain.metrics.statistics.readers import over_readers
from plantain.review.freezing import StudySettings, new_study
from plantain.review.ratings import Ratings
from plantain.review.results.analysis import analyse
from plantain.review.results.rows import rows_of
from plantain.review.study import Block, Item, ReaderTask
from plantain.rubrics import MED_BANANA
from review.study_on_paper import MODELS, all_criteria, material, read_all, small_study


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Three readers; the first model is accepted in 6 of 6 cases by all, the second by two readers in half of them."""
    study = small_study(
        tmp_path_factory.mktemp("s") / "s", ReaderTask.ACCEPT, ReaderTask.PAIR, ReaderTask.CHOOSE_ROI, cases=6
    )

    def say(reader: int, block: Block, item: Item, slots: list[str]) -> dict:
        if block.task is ReaderTask.ACCEPT:
            half = slots == [MODELS[1]] and reader < 2 and int(item.case[-1]) % 2
            return all_criteria(block, bool(slots == [MODELS[0]] or half))
        if block.task is ReaderTask.PAIR:
            return {"better": ("left", "right")[min(range(2), key=lambda i: MODELS.index(slots[i]))]}
        return {"cannot": "too dark"} if item is block.items[0] else {"proposal": 0, "mask": None}

    read_all(study, 3, say)
    with closing(Ratings.open(study)) as ratings:
        yield study, ratings


def test_planted_answers_are_recovered(read):
    study, ratings = read
    found = analyse(study, rows_of(study, ratings))
    accept, pair, regions = found["blocks"]
    assert accept["models"][MODELS[0]]["value"] == 1.0
    assert accept["models"][MODELS[1]]["value"] == pytest.approx(2 / 3 * 1 / 2)
    by_hand = over_readers(1 - np.array([[1, 0] * 3, [1, 0] * 3, [0] * 6]))
    difference = next(
        one for one in accept["differences"] if one["first"] == MODELS[0] and one["second"] == MODELS[1]
    )
    assert difference["value"] == pytest.approx(by_hand.value) and difference["p"] == pytest.approx(by_hand.p)
    assert difference["unbiased"] == pytest.approx(by_hand.unbiased)
    assert [one for one, _ in sorted(pair["strengths"].items(), key=lambda e: -e[1]["value"])] == list(MODELS)
    assert abs(pair["position"]["value"]) < 1.5 and regions["cannot"] == 3
    assert accept["judged"] == 3 * 18  # three readers, six cases, three models


def test_commands_write_results_as_page_and_json(read, tmp_path: Path):
    study, _ = read
    assert main(["review", "results", str(study.folder), "--to", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert MODELS[0] in page and "<script src" not in page
    assert json_of("review", "results", study.folder)["blocks"][0]["task"] == "accept"
    document = json_of("review", "export", study.folder, "--to", tmp_path / "out")
    assert document["hash"] == study.digest and {"answers.csv", "HASH"} <= set(document["files"])
    first = (tmp_path / "out" / "answers.csv").read_bytes()
    assert main(["review", "export", str(study.folder), "--to", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "answers.csv").read_bytes() == first
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    assert main(["review", "export", str(study.folder), "--to", str(tmp_path / "full")]) == 2


def test_every_task_has_results(tmp_path: Path):
    study = small_study(tmp_path / "s", cases=3)
    answers = {
        ReaderTask.ACCEPT: lambda block, item: all_criteria(block, item.case == "c0001"),
        ReaderTask.RATE: lambda block, item: {"scores": {name: 7 for name, _ in block.criteria}},
        ReaderTask.PAIR: lambda block, item: {"better": "left"},
        ReaderTask.RANK: lambda block, item: {"ranks": list(range(1, len(item.shown) + 1))},
        ReaderTask.REAL_OR_EDITED: lambda block, item: {"real": True},
        ReaderTask.CHOOSE_ROI: lambda block, item: {"proposal": 0, "mask": None},
        ReaderTask.DESCRIBE_OK: lambda block, item: {"right": True, "correction": ""},
    }
    read_all(study, 2, lambda _, block, item, slots: answers[block.task](block, item))
    found = json_of("review", "results", study.folder)["blocks"]
    assert {block["task"] for block in found} == set(ReaderTask) and all(block["judged"] for block in found)
    assert main(["review", "results", str(study.folder)]) == 0
    page = (study.folder / "results.html").read_text()
    assert all(block["title"] in page for block in found)


def test_invite_and_refusals(read, tmp_path: Path):
    study, _ = read
    links = [one["link"] for one in json_of("review", "invite", study.folder, "--readers", "2")["invited"]]
    assert len(set(links)) == 2 and all(link.startswith("http://127.0.0.1:8765/enter#") for link in links)
    for words, line in [
        (["results", str(tmp_path)], "is not a study"),
        (["results", f"{study.folder}2"], f"is missing; did you mean {str(study.folder)!r}?"),
        (["serve", str(study.folder), "--url", "ftp://x"], "--url 'ftp://x'"),
        (["new", str(tmp_path / "n"), "--from", str(tmp_path / "no"), "--task", "accept"], "no such run"),
        (["new", str(tmp_path / "n"), "--from", str(tmp_path), "--task", "acept"], "accept"),
        (
            ["new", str(tmp_path / "n"), "--from", str(tmp_path), "--task", "rate", "--scale", "5"],
            "--scale '5'",
        ),
    ]:
        assert line in refused("review", *words)


@pytest.mark.parametrize(("readers", "cases"), [(0, 2), (1, 1), (2, 2)])
def test_a_small_study_has_a_page_and_json(tmp_path: Path, readers: int, cases: int):
    study = small_study(tmp_path / "s", cases=cases)

    def say(reader: int, block: Block, item: Item, _: list[str]) -> dict:
        if block.task is ReaderTask.PAIR:
            return {"better": ("left", "tie")[reader]}
        if block.task is ReaderTask.REAL_OR_EDITED and (block.items.index(item) + reader) % 3:
            return {"real": bool(reader)}
        return {"cannot": "too dark"}

    read_all(study, readers, say)
    with closing(Ratings.open(study)) as ratings:
        json.dumps(analyse(study, rows_of(study, ratings)), allow_nan=False)
    for form in ([], ["--json"]):
        assert "nan" not in printed("review", "results", study.folder, *form).split()


def test_truncated_ratings_are_named(read, tmp_path):
    study = shutil.copytree(read[0].folder, tmp_path / "s")
    file = study / "ratings.sqlite"
    with closing(sqlite3.connect(file)) as ratings:
        ratings.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ratings.execute("PRAGMA journal_mode = DELETE")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert f"{file}: damaged" in refused("review", "results", study)


def test_agreement_with_the_judge_equals_the_papers_validation(tmp_path: Path):
    """100 edits, 2 readers: 81 % of readings agree, the judge rejects 12 % and accepts 7 % against them.

    The shares are those of Med-Banana-50K's human validation, planted here as 81, 12 and 7 edits.
    """
    cells = [(True, True)] * 50 + [(False, False)] * 31 + [(True, False)] * 12 + [(False, True)] * 7
    model = MODELS[0]
    found = [
        replace(one, source=f"t{n}", cluster=f"p{n}", verdicts={model: cells[n][1]})
        for n, one in enumerate(material(100, (model,)))
    ]
    settings = StudySettings("Validation", 0, (ReaderTask.ACCEPT,), MED_BANANA, cases=100)
    study = new_study(tmp_path / "s", found, ["run"], settings)
    rows = {case.id: int(case.source[1:]) for case in study.cases}
    read_all(study, 2, lambda _, block, item, slots: all_criteria(block, cells[rows[item.case]][0]))
    judge = json_of("review", "results", study.folder)["blocks"][0]["judge"]
    shares = {name: judge[name]["value"] for name in ("agreement", "strict", "lenient")}
    assert shares == pytest.approx({"agreement": 0.81, "strict": 0.12, "lenient": 0.07})
    text = printed("review", "results", study.folder)
    assert "agree" in text and "0.81" in text and "too strict" in (study.folder / "results.html").read_text()


def test_correlation_of_readers_ranks_equals_scipy(tmp_path: Path):
    """Spearman of two readers' ranks with ties, by case; the mean of scipy's values."""
    study = small_study(tmp_path / "s", ReaderTask.RANK, cases=3)
    given = [[(1, 2, 3), (1, 3, 2)], [(1, 1, 3), (1, 2, 3)], [(3, 2, 1), (1, 2, 3)]]

    def say(reader: int, _: Block, item: Item, slots: list[str]) -> dict:
        ranks = given[int(item.case[1:]) - 1][reader]
        return {"ranks": [ranks[MODELS.index(slot)] for slot in slots]}

    read_all(study, 2, say)
    with closing(Ratings.open(study)) as ratings:
        found = analyse(study, rows_of(study, ratings))
    expected = np.mean([stats.spearmanr(one, other).statistic for one, other in given])
    for block in found["blocks"]:
        assert block["agreement"]["spearman"]["value"] == pytest.approx(expected)


def test_plan_reports_power_hours_and_the_smallest_design():
    design = ["--readers", "5", "--cases", "100", "--effect", "0.15"]
    found = json_of("review", "plan", *design)
    assert 0.7 < found["power"] < 0.85 and 0.03 < found["type_1"] < 0.065
    assert found["hours"] == pytest.approx(5 * 100 * 2 * 20 / 3600)
    assert found["smallest"]["power"] >= 0.8
    sizes = {(row["readers"], row["cases"]): row["power"] for row in found["table"]}
    assert sizes[5, 100] == found["power"] < sizes[8, 100]
    text = printed("review", "plan", "--readers", "2", "--cases", "12", "--effect", "0.2")
    # 10 readers x 12 cases x 2 models x 20 s = 1.33 h
    assert "fewer than 4 readers cannot reach it" in text and "10 readers x 12 cases, 1.3 hours" in text


def test_plan_refuses_in_one_line():
    for words, line in (
        (
            ["--effect", "0.6"],
            "--base-rate 0.6: both rates must be between 0 and 1; with the effect it is 1.2",
        ),
        (["--effect", "0"], "--effect 0: give a difference other than 0"),
        (["--effect", "0.1", "--sd", "2", "--base-rate", "0.5"], "the variances come from one of them"),
    ):
        assert line in refused("review", "plan", *words)
