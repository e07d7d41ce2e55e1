"""The tables against a run whose every number can be counted by hand (its plan is in `report.run_on_paper`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plantain.journal import JournalReader
from plantain.journal.questions.status import costs, reasons, status_summary
from plantain.journal.questions.tables import call_outcomes, rounds_to_success, table1, table2
from plantain.metrics.statistics.intervals import wilson_share
from plantain.rubrics import MED_BANANA

WEIGHTS = {criterion.name: criterion.weight for criterion in MED_BANANA.criteria}


@pytest.fixture(scope="module")
def run(paper_run: Path) -> Path:
    return paper_run


@pytest.fixture
def reader(run: Path) -> Iterator[JournalReader]:
    with JournalReader.open(run) as reader:
        yield reader


def test_table1_counts_tasks(reader: JournalReader) -> None:
    table = table1(reader)
    counted = {
        (r.modality, r.direction): (r.findings, r.success, r.failed, r.not_applicable, r.stopped, r.pending)
        for r in table.rows
    }
    assert counted == {
        ("brain_mri", "add"): (2, 1, 0, 0, 1, 0),
        ("chest_xray", "add"): (4, 2, 1, 1, 0, 0),
        ("chest_xray", "remove"): (1, 1, 0, 0, 0, 0),
        ("fundus", "add"): (3, 1, 0, 0, 0, 2),
    }
    assert (table.total.findings, table.total.success, table.total.failed) == (9, 5, 1)
    assert table.superseded_attempts == 2
    # the row sums above: one of each state
    assert reasons(reader, 0) == ["  2 tasks for other reasons, which the report lists"]


def test_both_means_of_rounds_are_named(reader: JournalReader) -> None:
    # successes took 1 | 2, 1 | 3 | 2 rounds: 9 / 5 by tasks; rows' means 1, 1.5, 3, 2: 7.5 / 4
    table = table1(reader)
    assert [row.mean_rounds for row in table.rows] == [1.0, 1.5, 3.0, 2.0]
    assert table.mean_rounds_weighted == pytest.approx(1.8)
    assert table.mean_rounds_unweighted == pytest.approx(1.875)


def test_rates_count_patients_once(reader: JournalReader) -> None:
    # the two chest images belong to one patient: 3 closed tasks are one independent answer
    chest = table1(reader).rows[1].rate
    assert (chest.successes, chest.n, chest.clusters, chest.method) == (2, 3, 1, "wilson over clusters")
    assert (chest.low, chest.high) == wilson_share(2 / 3, 1)
    total = table1(reader).total.rate
    assert (total.successes, total.n, total.clusters) == (5, 6, 3)


def test_table2_counts_judged_attempts(reader: JournalReader) -> None:
    table = table2(reader, WEIGHTS)
    # attempts: 2 + 1 + 5 + 3 chest, 1 + 2 brain, 2 + 1 fundus = 17; one refused edit, one malformed judge
    assert (table.attempts, table.judged) == (17, 15)
    assert table.unjudged == (("edit refused", 1), ("judge malformed", 1))
    overall = {row.criterion: (row.overall.successes, row.overall.n) for row in table.criteria}
    # compliance fails when too subtle: Pneumothorax add and remove, Lung Lesion rounds 3 and 5, AMD's tied panel
    assert overall == {
        "instruction_compliance": (10, 15),
        "structural_plausibility": (15, 15),
        "realism": (12, 15),  # Lung Lesion 1 and 2, meningioma 1; AMD's third judge is outvoted
        "fidelity_preservation": (9, 15),  # those, Lung Lesion 4 and 5, Diabetes
    }
    # round 1 of 8 tasks: three too subtle
    assert (table.criteria[0].first_round.successes, table.criteria[0].first_round.n) == (5, 8)
    assert (table.criteria[0].criterion, table.criteria[0].weight) == ("instruction_compliance", 0.4)
    assert (table.qualified.overall.successes, table.qualified.first_round.successes) == (5, 2)


def test_both_policies_are_compared_with_the_judges_opinion(reader: JournalReader) -> None:
    table = table2(reader, WEIGHTS)
    # weighted at 0.7 also lets through what lost only its grain (0.85): Lung Lesion 4 and Diabetes
    assert (table.all_pass.successes, table.weighted.successes, table.opinion.successes) == (5, 7, 7)
    assert (table.opinion_agrees.successes, table.opinion_agrees.n) == (13, 15)


def test_failure_codes_are_counted_per_criterion(reader: JournalReader) -> None:
    codes = {row.criterion: row.codes for row in table2(reader, WEIGHTS).criteria}
    assert codes["instruction_compliance"] == (("too_subtle", 5),)
    assert codes["realism"] == (("blending_artefact", 3), ("repetition", 3))
    assert codes["fidelity_preservation"] == (("hard_edge", 3), ("lost_grain", 3))


def test_hazard_counts_only_tasks_that_reached_the_round(reader: JournalReader) -> None:
    rows = rounds_to_success(reader)
    # reached: 5 successes, Lung Lesion in all five rounds, meningioma stopped in its second: decided in its first
    assert [(row.at_risk, row.success) for row in rows] == [(7, 2), (4, 2), (2, 1), (1, 0), (1, 0)]
    assert [row.cumulative for row in rows] == pytest.approx([0.4, 0.8, 1, 1, 1])
    assert rows[0].hazard == pytest.approx(2 / 7) and rows[4].cumulative_tasks == pytest.approx(5 / 6)


def test_outcomes_count_answers_and_costs_count_tries(reader: JournalReader) -> None:
    assert {(row.step, row.outcome): row.calls for row in call_outcomes(reader)} == {
        ("write", "ok"): 17,
        ("edit", "ok"): 16,
        ("edit", "refused"): 1,
        ("judge", "ok"): 15,
        ("judge", "malformed"): 1,
    }
    edit = costs(reader)[1]
    # 19 edits of all generations; the first round of each of 9 stories was tried twice
    assert (edit.tries, edit.final, edit.priced) == (28, 19, 19)
    assert edit.served_models == ("offline/procedural@1",)


def test_status_has_the_promised_shape(reader: JournalReader, run: Path) -> None:
    status = status_summary(reader)
    assert status["tasks"] == {
        "total": 10, "success": 5, "failed": 1, "undecided": 0, "not_applicable": 1, "stopped": 1, "pending": 2,
    }  # fmt: skip
    assert status["rounds"] == {"1": 2, "2": 2, "3": 1}
    assert (status["attempts"], status["attempts_superseded"]) == (17, 2)
    assert status["calls"] == {"made": 65, "replayed": 3, "open": 0}
    assert status["outcomes"] == {"malformed": 1, "ok": 54, "refused": 1, "transport": 9}
    assert status["cost_usd"] == pytest.approx(0.056) and status["report"] is None
    assert status["modalities"] == ["brain_mri", "chest_xray", "fundus"]
