"""Whole runs with a judge that is asked blind: two calls each, online and in jobs, and none of them bought twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from fakes.batch_jobs import FakeJobs
from fakes.server import FakeProvider
from pipeline.batched import check_whole, recipe, rows, run
from pipeline.wrecks import derived
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe

SEED = 8
"""With which the edit is shown first in some calls and last in others."""


def blind(made: Recipe, judges: int = 1, findings: int = 1, **limits: object) -> Recipe:
    """The recipe with its judge asked blind, and a panel of it where wanted; of its three findings the first ones."""
    told = made.model_dump(mode="json")
    told["data"]["findings"] = told["data"]["findings"][:findings]
    told["settings"] = {"judge": {"form": "blind"}}
    told["models"]["judge"] = told["models"]["judge"] * judges
    told["limits"] |= limits
    told["seed"] = SEED
    return Recipe.model_validate(told)


def steps(folder: Path) -> Counter[str]:
    return Counter(dict(rows(folder, "SELECT step, count(*) FROM call WHERE final = 1 GROUP BY step")))


@pytest.mark.parametrize("form", ["gemini", "openai"])
def test_a_run_in_jobs_equals_the_online_run_and_records_the_order(
    form: str, one_image: Path, server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    made = blind(recipe(one_image, server.url, form, "online"), findings=2)
    assert run(made, tmp_path / "online").stopped is None
    in_jobs = blind(recipe(one_image, server.url, form, requests=2, images=2), findings=2)
    check_whole(tmp_path / "jobs", run(in_jobs, tmp_path / "jobs"), jobs)
    assert derived(tmp_path / "jobs") == derived(tmp_path / "online")
    counted = steps(tmp_path / "jobs")
    assert counted["look"] == counted["judge"] > 0
    looks = rows(tmp_path / "online", "SELECT answer FROM call WHERE step = 'look'")
    assert {json.loads(answer)["edited_first"] for (answer,) in looks} == {True, False}
    with JournalReader.open(tmp_path / "online") as reader:
        for row in reader.tasks():
            for attempt in reader.attempts(row.task.id):
                assert (
                    attempt.verdict is None or "is the original" in attempt.verdict.observations.differences
                )


def test_stopped_between_the_turns_nothing_is_bought_twice(
    one_image: Path, server: FakeProvider, tmp_path: Path
) -> None:
    """Every process may make one call more than the last: so a run of a panel of two ends after each call once."""
    made = recipe(one_image, server.url, "gemini", "online", rounds=1)
    ends = [run(blind(made, 2, max_calls=calls), tmp_path / "run").stopped for calls in range(3, 7)]
    assert ["max_calls" in (end or "") for end in ends] == [True, True, True, False] and ends[-1] is None
    whole = run(blind(made, 2), tmp_path / "whole")
    assert whole.stopped is None and derived(tmp_path / "run") == derived(tmp_path / "whole")
    assert steps(tmp_path / "run") == {"write": 1, "edit": 1, "look": 2, "judge": 2}
    posted = Counter(request.body for request in server.calls if request.method == "POST")
    assert set(posted.values()) == {
        2
    }  # once by each of the two runs: seeds and orders make all bodies differ
