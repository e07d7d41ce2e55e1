"""Flips between judges, counted by hand, and a page with their images."""

from __future__ import annotations

import asyncio
from importlib import resources
from pathlib import Path

from audit.stored_run import RuleJudge, seen, stored_run
from plantain.audit.flips import IN_RUN, consistency, flips, judged_attempts, tallies
from plantain.audit.pages import write_rejudged
from plantain.audit.rejudge import RejudgeRequest, run_rejudge
from plantain.journal import JournalReader
from plantain.records import CriterionResult, Observations
from plantain.rubrics import rubric_named
from plantain.runs.terms import Terms


def test_flips_are_counted_for_every_two_judges_and_every_criterion(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", images=2)
    amd = RuleJudge("rule/amd", lambda request: seen("AMD" in request.instruction))
    yes = RuleJudge("rule/yes", lambda request: seen(True))
    partly = RuleJudge("rule/partly", lambda request: seen(True, None, True, True))
    done = asyncio.run(run_rejudge(run, RejudgeRequest((amd, yes, partly)), Terms(())))
    with JournalReader.open(run) as reader:
        attempts = judged_attempts(reader, done, RejudgeRequest(()))
        asked, others = tallies(reader, attempts, done)
        found = flips(attempts, [str(one["judge"]) for one in (*asked, *others)])
        page = write_rejudged(reader, [*asked, *others], found).read_text()
    by = {one["judge"]: one for one in (*asked, *others)}
    # 2 images x 2 findings x 2 rounds = 8 attempts; half of them ask for AMD; the run's own judge accepted none.
    assert (by["rule/amd"]["judged"], by["rule/amd"]["qualified"], by["rule/amd"]["calls"]) == (8, 4, 8)
    assert (by["rule/partly"]["qualified"], by["rule/partly"]["unscored"]) == (0, 8)
    assert by[f"old/judge {IN_RUN}"]["qualified"] == 0
    pair = [one for one in found if (one["first"], one["second"]) == ("rule/amd", "rule/yes")]
    counts = ("both", "first_only", "second_only", "neither", "n")
    by_criterion = {one["criterion"]: [one[name] for name in counts] for one in pair}
    assert by_criterion.keys() == {"qualified", *by["rule/yes"]["criteria"]}
    assert all(numbers == [4, 0, 4, 0, 8] for numbers in by_criterion.values())
    whole = next(one for one in pair if one["criterion"] == "qualified")
    assert whole["rate"] == 0.5 and whole["low"] < 0.5 < whole["high"]
    # Kappa by hand: observed 4 / 8; expected 0.5 x 1 + 0.5 x 0 = 0.5; so 0.
    assert whole["kappa"]["value"] == 0.0
    examples = whole["examples"]
    assert len(examples) == 4 and {(e["finding"], e["by"]) for e in examples} == {("Cataract", "rule/yes")}
    # An unscored verdict flips with none; a criterion that both scored can still flip.
    unscored = [one for one in found if "rule/partly" in (one["first"], one["second"])]
    assert {one["n"] for one in unscored if one["criterion"] in ("qualified", "structural_plausibility")} == {
        0
    }
    assert page.count("data:image/jpeg") >= 8 and "rule/amd: no card" in page


def test_rows_name_each_judge_and_mark_unscored_criteria(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", images=1)
    partly = RuleJudge("rule/partly", lambda request: seen(True, None, True, True))
    silent = RuleJudge("rule/silent", lambda request: None)
    done = asyncio.run(run_rejudge(run, RejudgeRequest((partly, silent)), Terms(())))
    with JournalReader.open(run) as reader:
        attempts = judged_attempts(reader, done, RejudgeRequest(()))
        asked, _ = tallies(reader, attempts, done)
    rows = [row for one in attempts for row in one.rows(["rule/partly", "rule/silent"])]
    assert len(rows) == 2 * 2 * 2
    assert {(row["judge"], row["qualified"]) for row in rows} == {
        ("rule/partly", None),
        ("rule/silent", None),
    }
    assert rows[0]["criteria"]["structural_plausibility"] is None and rows[0]["criteria"]["realism"] is True
    assert asked[1]["unjudged"] == {"refused: not this one": 4} and asked[1]["judged"] == 0


def test_consistency_study_counts_identical_and_one_dimension_apart(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", images=5)  # 5 images x 2 findings x 2 rounds = 20 attempts
    second = [(True, True, False, True)] * 2 + [(False, True, False, True)] + [(True, None, True, True)]
    asked: dict[bytes, int] = {}

    def rule(request):
        image = request.edited.data + request.instruction.encode()
        asked[image] = asked.get(image, 0) + 1
        later = asked[image] == 2 and second
        return seen(*later.pop()) if later else seen(True)

    judge = RuleJudge("rule/moody", rule)
    done = asyncio.run(run_rejudge(run, RejudgeRequest((judge,), repeat=2), Terms(())))
    again = asyncio.run(run_rejudge(run, RejudgeRequest((judge,), repeat=2), Terms(())))
    assert judge.asked == 40 and again.summary.made == 0  # recorded draws are reused
    other = RuleJudge("rule/other", lambda request: seen(True))
    later = asyncio.run(run_rejudge(run, RejudgeRequest((other,)), Terms(())))
    with JournalReader.open(run) as reader:
        assert len(consistency(judged_attempts(reader, done, RejudgeRequest(())))) == 1
        # pages show all stored judges
        (study,) = consistency(judged_attempts(reader, later, RejudgeRequest(())))
    # By hand, as Med-Banana-50K, 4.3, counts: of 19 complete pairs 16 identical, 2 differ in one dimension, 1 in two.
    assert study["identical"]["n"] == 19 and study["unscored"] == 1
    assert study["identical"]["rate"] == round(16 / 19, 4)
    assert study["one_dimension"]["rate"] == round(2 / 19, 4)
    assert study["identical"]["low"] < 16 / 19 < study["identical"]["high"]


def test_decision_on_the_whole_edit_is_not_a_dimension(tmp_path: Path) -> None:
    # By hand: each second answer fails realism and, with it, the whole edit. `qualified` is the judge's decision in
    # Med-Banana-50K, 4.2, so one dimension differs. In a rubric of one's own, "overall" without that key is a second.
    published = Path(str(resources.files("plantain.rubrics"))) / "med_banana_published.toml"
    own = tmp_path / "own.toml"
    own.write_text(
        published.read_text().replace('key = "qualified"\n', "").replace("banana-published", "own")
    )
    for rubric, expected in (("med-banana-published", 1.0), (str(own), 0.0)):
        asked: set[bytes] = set()

        def rule(request, asked=asked):
            image = request.edited.data + request.instruction.encode()
            again = image in asked
            asked.add(image)
            names = [one.name for one in rubric_named("med-banana-published").criteria]
            failed = {"realism", "overall"} if again else set()
            return Observations({name: CriterionResult(name not in failed) for name in names}, {}, None, "")

        run = stored_run(tmp_path / Path(rubric).stem, images=1)
        request = RejudgeRequest((RuleJudge("rule/strict", rule),), rubric=rubric, repeat=2)
        done = asyncio.run(run_rejudge(run, request, Terms(())))
        with JournalReader.open(run) as reader:
            (study,) = consistency(judged_attempts(reader, done, request))
        assert (study["identical"]["rate"], study["one_dimension"]["rate"]) == (0.0, expected)
