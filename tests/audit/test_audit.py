"""The audit: sets of images without overlap, correctly counted rates on a judge's card, and its gate."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from audit.stored_run import RuleJudge, seen, taxonomy_of
from fakes.samples import package_samples
from plantain.audit import images
from plantain.audit.card import defects_caught
from plantain.audit.clean import recipes
from plantain.audit.gate import AGAIN, CLEAN, TrialAnswer, gaps_of, gate_of, scored
from plantain.audit.run import AuditPlan, run_audit
from plantain.audit.trials import chosen_kinds
from plantain.cli import main
from plantain.findings import load_taxonomy
from plantain.journal import Journal, RunHeader
from plantain.journal.cards import cards_of, read_card
from plantain.metrics.statistics.gap import gap_of
from plantain.offline.workers import close_workers
from plantain.records import Criterion, Figure, InputError
from plantain.rubrics import MED_BANANA, MEDEBENCH
from plantain.runs.terms import Terms

CRITERIA = [criterion.value for criterion in Criterion]


def test_the_gap_counts_every_image_once():
    # Image a: right 1 of 1, wrong 1 of 2: +0.5. Image b: right 1 of 2, wrong 0 of 1: +0.5. Image c has no wrong
    # edit and is ignored. The mean of both is 0.5, for any number of answers.
    answers = [("a", True, 1.0), ("a", False, 1.0), ("a", False, 0.0)]
    answers += [("b", True, 1.0), ("b", True, 0.0), ("b", False, 0.0), ("c", True, 1.0)]
    found = gap_of(answers)
    assert (found.value, found.images, found.answers, found.right, found.wrong) == (0.5, 2, 6, 0.75, 0.25)


def test_the_bound_of_a_perfect_judge_is_wilsons():
    # 40 images, gap 1 on each: as a share (1 + 1) / 2 = 1, Wilson's one-sided bound at 5 % is n / (n + z^2) with
    # z = 1.645: 40 / 42.706 = 0.9366; back on [-1, 1] 0.8733.
    found = gap_of([(p, right, float(right)) for p in range(40) for right in (True, False)])
    assert found.alone == pytest.approx(0.8733, abs=1e-4)


def audit_of(rule, number_of_images, kinds=("swapped label", "seam")):
    """Answers of a judge by rule(image number, right) on one clean and one wrong edit of each kind."""
    return [
        TrialAnswer(
            kind,
            "fundus",
            "add",
            f"p{number}",
            tuple(CRITERIA) if kind == "seam" else (),
            {c: float(rule(number, kind == CLEAN)) for c in CRITERIA},
            True,
        )
        for number in range(number_of_images)
        for kind in (CLEAN, *kinds)
    ]


def gated(answers, controls=None):
    return gate_of(gaps_of(answers, CRITERIA), controls or {}, None, 1.0)


def test_perfect_judge_needs_thirty_images_to_rank():
    gate = gated(audit_of(lambda number, right: right, 29))
    assert (gate.standing, gate.rank) == ("neither", False)
    assert gate.why[0].startswith("n = 29 independent images for")
    assert gated(audit_of(lambda number, right: right, 30)).standing == "may rank"


@pytest.mark.parametrize(
    "rule",
    [lambda number, right: True, lambda number, right: False, lambda number, right: number % 3 == 0],
    ids=["always yes", "always no", "by the image"],
)
def test_judges_that_ignore_the_edit_may_not_rank(rule):
    gate = gated(audit_of(rule, 100))
    assert not gate.rank and "no better than chance" in gate.why[0]


def test_judge_qualifies_only_when_every_control_was_measured_and_passed():
    perfect = audit_of(lambda number, right: right, 60)
    yes, no = Figure(60, 1.0, 0.94, 1.0, 60), Figure(60, 0.0, 0.0, 0.06, 60)
    held = {"clean edit": yes, "identical": no, "swapped label": no, "accepted jpeg 75": yes}
    held |= dict.fromkeys(("blob", "dots", "grey wash", "text", "copied patch", "black image"), no)
    gaps = gaps_of(perfect, CRITERIA)
    assert gate_of(gaps, held, yes, 1.0).standing == "may qualify"
    wrong = {"blob": yes, "clean edit": no, "accepted jpeg 75": no, "identical": yes, "black image": yes}
    for name, spoilt in wrong.items():
        gate = gate_of(gaps, {**held, name: spoilt}, yes, 1.0)
        assert gate.standing == "may rank" and name.split(" ")[0] in " ".join(gate.why)
    without = {name: figure for name, figure in held.items() if name != "blob"}
    assert (
        "blob: no such edit was judged; of the share accepted, the upper"
        in gate_of(gaps, without, yes, 1.0).why[0]
    )
    assert gate_of(gaps, held, None, 1.0).standing == "may rank"
    assert gate_of(gaps, held, yes, 0.5).standing == "neither"


def test_unscored_criterion_is_not_accepted():
    shares, qualified, failed = scored(seen(True, True, None, True), MED_BANANA)
    assert qualified is False and shares["realism"] is None and failed == set()
    assert scored(None, MED_BANANA) == ({}, None, frozenset())
    assert MEDEBENCH.criterion("visual_quality").scale == (0, 10)


def test_verdict_is_one_sentence_and_each_check_has_a_result():
    alike = gated(audit_of(lambda number, right: True, 60))
    assert alike.verdict == "No: it scores right and wrong edits alike."
    assert {check.result for check in alike.checks if check.name in map(spaced, CRITERIA)} == {"fail"}
    few = gated(audit_of(lambda number, right: right, 29))
    assert few.verdict.startswith("Not known: too few images")
    assert {check.result for check in few.checks} == {"too few images"}
    good = gated(audit_of(lambda number, right: right, 60), {"blob": Figure(60, 1.0, 0.94, 1.0, 60)})
    assert good.verdict.startswith("Only to rank editors")
    results = {check.name: check.result for check in good.checks}
    # All 60 blobs were accepted: a fail; clean edits were never judged: too few images.
    assert (results["blob"], results["realism"]) == ("fail", "pass")
    assert results["clean edits, which are right"] == "too few images"
    # 1 of 4 accepted: Wilson's upper bound is 70 %, the value is not above 20 % in 0 of 4, whose bound is 49 %.
    for value, high, result in ((0.25, 0.70, "fail"), (0.0, 0.49, "too few images")):
        gate = gated(audit_of(lambda number, right: right, 60), {"blob": Figure(4, value, 0.0, high, 4)})
        assert {check.name: check.result for check in gate.checks}["blob"] == result


def spaced(name):
    return name.replace("_", " ")


def test_unanswered_criterion_is_neither_caught_nor_failed():
    def answer(realism):
        shares = dict.fromkeys(CRITERIA, 1.0) | {"realism": realism}
        failed = frozenset(name for name, share in shares.items() if share == 0.0)
        return TrialAnswer("hard seam", "fundus", "add", "p", ("realism",), shares, False, failed)

    answers = [answer(None), answer(None), answer(0.0), answer(1.0)]
    caught = defects_caught(answers, MED_BANANA)["hard seam"]
    assert (caught.n, caught.value) == (2, 0.5)  # by hand: one of the two answered was caught
    assert defects_caught(answers[:2], MED_BANANA) == {}


def test_recipes_repeat_exactly_and_alternate_between_modalities():
    sources, taxonomy = images.package_images(), load_taxonomy()
    first = list(islice(recipes(sources, taxonomy, 3), 12))
    again = list(islice(recipes(sources, taxonomy, 3), 12))
    assert [r.name for r in first] == [r.name for r in again]
    assert Counter(r.source.image.modality for r in first) == {"chest_xray": 4, "brain_mri": 4, "fundus": 4}


def test_images_of_a_run_are_the_real_originals_with_their_bytes(tmp_path):
    real, data = package_samples()[1].prepared()
    drawn = replace(real, id="drawn", synthetic=True)

    async def store():
        async with Journal.create(tmp_path / "run", RunHeader("id", "name", 1, {}, "0.1.0")) as journal:
            blob = journal.put_blob(data, "image/jpeg")
            await journal.add_images([(real, blob), (drawn, blob)])

    asyncio.run(store())
    with pytest.raises(InputError, match="neither a run nor a catalogue"):
        images.images_in(tmp_path, load_taxonomy())
    found = images.images_in(tmp_path / "run", load_taxonomy())
    assert [(one.image.id, one.data) for one in found] == [(real.id, data)]


def test_small_audit_asks_once_and_ends_in_neither(tmp_path):
    # A judge that accepts every image except an identical one: its card shows that it accepts blobs too.
    naive = RuleJudge(
        "rule/naive", lambda request: seen(not request.edited.data.endswith(request.original.data[600:]))
    )
    plan = AuditPlan(
        naive, pairs=2, seed=17, kinds=chosen_kinds("blob,swapped label,identical,black image,hard seam")
    )
    sources = [source for source in images.package_images() if source.image.modality == "fundus"]
    folder, taxonomy = tmp_path / "audit", taxonomy_of("AMD", "Glaucoma")
    try:
        first = asyncio.run(run_audit(plan, Terms(()), folder, sources, taxonomy))
        before, card, answers = naive.asked, first.card, first.answers
        again = asyncio.run(run_audit(plan, Terms(()), folder, sources, taxonomy))
    finally:
        close_workers()
    assert naive.asked == before and again.summary.made == 0 and first.summary.made == len(answers)
    assert again.card == card
    assert card.gate.standing == "neither" and "independent images" in card.gate.why[0]
    for accepted in ("blob", "swapped label", "black image"):
        assert card.controls[accepted].value == 1.0
    assert card.repeats["identical"].value == 1.0 and card.repeats["identical"].images == 1
    assert {answer.kind for answer in answers} >= {CLEAN, AGAIN, "blob", "hard seam"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "offline/instrument"], "did you mean 'offline/instruments'"),
        (["no-such-folder"], "no such folder"),
    ],
)
def test_audit_of_an_unknown_judge_or_run_gives_one_line_and_code_2(arguments, message, capsys):
    assert main(["judge", "audit", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_audit_writes_the_card_as_json_as_a_page_and_into_the_run(tmp_path, capsys):
    options = ["--pairs", "1", "--kinds", "blob,20 % strength", "--json"]
    options += ["--run", str(tmp_path / "audit"), "--to", str(tmp_path / "pages")]
    try:
        assert main(["judge", "audit", *options]) == 0
    finally:
        close_workers()
    card = json.loads(capsys.readouterr().out)
    assert card["judge"] == "offline/instruments" and card["cost_usd"] == 0
    assert card["gate"]["qualify"] is card["gate"]["rank"] is False and card["gate"]["why"]
    assert {"n", "rate", "low", "high"} <= card["controls"]["blob"].keys()
    assert card["defects"]["20 % strength"]["n"] == 1
    assert card["gate"]["verdict"].startswith("Not known") and card["gate"]["checks"][0]["result"]
    assert "identical" in card["repeats"] and card["agreement"] == {}
    pages = tmp_path / "pages"
    assert read_card(pages / "card.json") == cards_of(tmp_path / "audit")[0]
    assert (
        "not shown to be reliable" in (page := (pages / "card.html").read_text())
        and "too few images</span></td>" in page
    )


def test_plan_counts_calls_and_makes_none(capsys):
    hosted = ["judge", "audit", "--judge", "gemini/gemini-3.1-pro-preview"]
    assert main([*hosted, "--pairs", "2", "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["calls"]["gemini/gemini-3.1-pro-preview"] == plan["edits"] > 50
    assert plan["cost_usd"][0] > 0 and plan["independent"] == 4
    # Clean edits are judged until enough of them gave a blob: 10 verdicts, while the plan announced "at most" 6.
    assert main(["judge", "audit", "--pairs", "2", "--kinds", "blob", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edits"] == 2 * 6 * 2 + 2


def test_plan_prices_the_calls(capsys):
    model = "gemini/gemini-3.8-flash"
    assert main(["judge", "audit", "--judge", model, "--pairs", "2", "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["calls"][model] == plan["edits"]
    # 3,800 tokens read at 0.75 and 1,250 written at 3.75 dollars per million, 0.7 to 1.5 times
    each = (3_800 * 0.75 + 1_250 * 3.75) / 1e6
    # at the most six clean edits, judged twice, for each of the two that are wanted; at the least one
    least, most = plan["edits"] - 2 * 5 * 2, plan["edits"]
    known = [pytest.approx(0.7 * least * each, abs=1e-3), pytest.approx(1.5 * most * each, abs=1e-3)]
    assert plan["cost_usd"] == known


def test_a_hosted_judge_needs_a_folder_for_its_answers(capsys):
    assert main(["judge", "audit", "--judge", "gemini/gemini-3.1-pro-preview"]) == 2
    assert "--run" in capsys.readouterr().err
