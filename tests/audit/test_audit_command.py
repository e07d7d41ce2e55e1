"""`plantain judge audit`: what a person is told who asks for the wrong thing, and the report as JSON."""

from __future__ import annotations

import json

import pytest

from plantain.cli import main
from plantain.journal.cards import cards_of, read_card
from plantain.offline.workers import close_workers


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--judge", "offline/instrument"], "did you mean 'offline/instruments'"),
        (["no-such-folder"], "no such folder"),
    ],
)
def test_audit_of_something_unknown_is_one_line_and_code_2(arguments, told, capsys):
    assert main(["judge", "audit", *arguments]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_audit_json_is_the_published_shape_and_pages_and_the_run_have_the_card(tmp_path, capsys):
    options = ["--pairs", "1", "--finding", "AMD", "--kinds", "blob,20 % strength", "--json"]
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
    assert {"identical", "realism"} <= card["repeats"].keys() and card["agreement"] == {}
    pages = tmp_path / "pages"
    assert read_card(pages / "card.json") == cards_of(tmp_path / "audit")[0]
    assert "neither" in (page := (pages / "card.html").read_text()) and "too few images</span></td>" in page


def test_a_plan_says_what_would_be_asked_and_calls_nothing(capsys):
    hosted = ["judge", "audit", "--judge", "gemini/gemini-3.1-pro-preview"]
    assert main([*hosted, "--pairs", "2", "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["calls"]["gemini/gemini-3.1-pro-preview"] == plan["edits"] > 50
    assert plan["cost_usd"][0] > 0 and plan["independent"] == 4
    # Clean edits are asked about until enough of them gave a blob: 10 verdicts where 6 "at most" were announced.
    assert main(["judge", "audit", "--pairs", "2", "--kinds", "blob", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edits"] == 2 * 6 * 2 + 2


@pytest.mark.parametrize(
    ("section", "calls"),
    [
        ('form = "blind"', 2),
        ('form = "blind"\n[data]\ncatalogue = "a recipe"', 2),
        ('service_tier = "priority"', 1),
    ],
)
def test_a_plan_counts_both_turns_of_a_blind_judge_and_guesses_no_tier(section, calls, tmp_path, capsys):
    (tmp_path / "terms.toml").write_text(f"[providers.gemini]\n{section}\n")
    options = ["--pairs", "2", "--dry-run", "--json", "--settings", str(tmp_path / "terms.toml")]
    model = "gemini/gemini-3.8-flash" if calls == 2 else "gemini/gemini-3.5-flash"
    assert main(["judge", "audit", "--judge", model, *options]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["calls"][model] == calls * plan["edits"]
    # of the two turns: 7,300 tokens read at 0.75 and 2,650 written at 3.75 dollars per million, 0.7 to 1.5 times
    each = (7_300 * 0.75 + 2_650 * 3.75) / 1e6
    # at the most six clean edits, judged twice, for each of the two that are wanted; at the least one
    least, most = plan["edits"] - 2 * 5 * 2, plan["edits"]
    known = [pytest.approx(0.7 * least * each, abs=1e-3), pytest.approx(1.5 * most * each, abs=1e-3)]
    assert plan["cost_usd"] == (known if calls == 2 else None)


def test_a_hosted_judge_needs_a_folder_for_its_answers(capsys):
    assert main(["judge", "audit", "--judge", "gemini/gemini-3.1-pro-preview"]) == 2
    assert "--run" in capsys.readouterr().err
