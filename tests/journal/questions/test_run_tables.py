"""The tables against a run whose every number can be counted by hand (its plan stands in `report.run_on_paper`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from plantain.journal import Journal, JournalReader
from plantain.journal.questions.release import closed_only
from plantain.journal.questions.tables import (
    by_finding,
    call_outcomes,
    rounds_to_success,
    table1,
    table2,
)
from plantain.journal.questions.telemetry import costs, status_summary
from plantain.journal.questions.units import snapshot
from plantain.metrics.statistics.intervals import wilson_share
from plantain.records import Direction, TaskState
from plantain.rubrics import MED_BANANA
from report.run_on_paper import GRAIN, PASS, SUBTLE, Planned, build_run

WEIGHTS = {criterion.name: criterion.weight for criterion in MED_BANANA.criteria}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("tables") / "run")


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
    assert table.controls == 1 and table.superseded_attempts == 2


def test_mean_rounds_say_which_mean(reader: JournalReader) -> None:
    # successes took 1 | 2, 1 | 3 | 2 rounds: 9 / 5 by tasks; rows' means 1, 1.5, 3, 2: 7.5 / 4
    table = table1(reader)
    assert [row.mean_rounds for row in table.rows] == [1.0, 1.5, 3.0, 2.0]
    assert table.mean_rounds_weighted == pytest.approx(1.8)
    assert table.mean_rounds_unweighted == pytest.approx(1.875)


def test_rates_know_that_patients_repeat(reader: JournalReader) -> None:
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


def test_both_policies_stand_beside_the_judges_opinion(reader: JournalReader) -> None:
    table = table2(reader, WEIGHTS)
    # weighted at 0.7 also lets through what lost only its grain (0.85): Lung Lesion 4 and Diabetes
    assert (table.all_pass.successes, table.weighted.successes, table.opinion.successes) == (5, 7, 7)
    assert (table.opinion_agrees.successes, table.opinion_agrees.n) == (13, 15)


def test_failure_codes_are_counted_per_criterion(reader: JournalReader) -> None:
    codes = {row.criterion: row.codes for row in table2(reader, WEIGHTS).criteria}
    assert codes["instruction_compliance"] == (("too_subtle", 5),)
    assert codes["realism"] == (("blending_artefact", 3), ("repetition", 3))
    assert codes["fidelity_preservation"] == (("hard_edge", 3), ("lost_grain", 3))


def test_hazard_is_over_those_who_reached_the_round(reader: JournalReader) -> None:
    rows = rounds_to_success(reader)
    # reached: 5 successes, Lung Lesion in all five rounds, meningioma stopped in its second: decided in its first
    assert [(row.at_risk, row.success) for row in rows] == [(7, 2), (4, 2), (2, 1), (1, 0), (1, 0)]
    assert [row.cumulative for row in rows] == pytest.approx([0.4, 0.8, 1, 1, 1])
    assert rows[0].hazard == pytest.approx(2 / 7) and rows[4].cumulative_tasks == pytest.approx(5 / 6)


def test_findings_keep_tasks_and_attempts_apart(reader: JournalReader) -> None:
    rows = {(row.finding, row.direction): row for row in by_finding(reader)}
    lesion = rows["Lung Lesion", "add"]
    assert (lesion.success, lesion.failed, lesion.rate.n, lesion.judged) == (0, 1, 1, 5)
    assert (lesion.qualified_weighted.successes, lesion.qualified_all_pass.successes) == (1, 0)
    assert lesion.mean_score == pytest.approx((0.65 + 0.65 + 0.60 + 0.85 + 0.45) / 5)
    untouched = rows["Cataract", "add"]
    assert untouched.other == 1 and untouched.rate.value is None and untouched.mean_score is None


def test_outcomes_count_answers_and_costs_count_tries(reader: JournalReader) -> None:
    assert {(row.step, row.outcome): row.calls for row in call_outcomes(reader)} == {
        ("write", "ok"): 17,
        ("edit", "ok"): 16,
        ("edit", "refused"): 1,
        ("judge", "ok"): 15,
        ("judge", "malformed"): 1,
    }
    edit = costs(reader)[1]
    # 20 edits of all generations and the control; the first round of each of 10 stories was tried twice
    assert (edit.tries, edit.final, edit.priced, edit.served_models) == (
        30,
        20,
        20,
        ("offline/procedural@1",),
    )


def test_status_has_the_promised_shape(reader: JournalReader, run: Path) -> None:
    status = status_summary(reader)
    assert status["tasks"] == {
        "total": 11, "success": 6, "failed": 1, "undecided": 0, "not_applicable": 1, "stopped": 1, "pending": 2,
    }  # fmt: skip
    assert status["rounds"] == {"1": 3, "2": 2, "3": 1}  # the control task is a task
    assert (status["attempts"], status["attempts_superseded"]) == (18, 2)
    assert status["calls"] == {"made": 69, "replayed": 3, "open": 0}
    assert status["outcomes"] == {"malformed": 1, "ok": 57, "refused": 1, "transport": 10}
    assert status["cost_usd"] == pytest.approx(0.059) and status["report"] is None
    assert status["modalities"] == ["brain_mri", "chest_xray", "fundus"]


def test_many_images_are_bootstrapped_the_same_each_time(tmp_path: Path) -> None:
    plan = tuple(
        Planned(image, f"kind {n}", Direction.ADD, rounds, state)
        for n in range(6)
        for image, rounds, state in (
            ("chest", (PASS,), TaskState.SUCCESS),
            (
                "brain",
                (SUBTLE, PASS) if n % 2 else (GRAIN,),
                TaskState.SUCCESS if n % 2 else TaskState.FAILED,
            ),
        )
    )
    run = build_run(tmp_path / "run", plan=plan)
    with JournalReader.open(run) as reader:
        assert by_finding(reader) == by_finding(reader)
        assert table2(reader, WEIGHTS) == table2(reader, WEIGHTS)
        assert table1(reader).total.rate.n == 12 and table1(reader).total.rate.clusters == 2


def test_an_empty_run_has_empty_tables(tmp_path: Path) -> None:
    with JournalReader.open(build_run(tmp_path / "run", plan=())) as reader:
        assert table1(reader).rows == () and table1(reader).total.rate.value is None
        assert table2(reader, WEIGHTS).qualified.overall.value is None
        assert rounds_to_success(reader) == () and by_finding(reader) == ()
        assert status_summary(reader)["tasks"]["total"] == 0


def test_snapshot_sees_one_state_while_a_build_writes(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run")
    with JournalReader.open(run) as reader, snapshot(reader):
        before = table1(reader)
        build_more(run)
        assert table1(reader) == before
    with JournalReader.open(run) as reader:
        assert table1(reader).total.pending == before.total.pending + 5


def build_more(run: Path) -> None:
    """Adds five pending tasks through the journal, as a build would."""
    import asyncio

    from plantain.records import EditTask

    async def add() -> None:
        async with Journal.open(run) as journal:
            await journal.add_tasks(
                [EditTask(f"{n:020d}", "chest", "chest_xray", "Edema", Direction.ADD) for n in range(5)]
            )

    asyncio.run(add())


def test_tables_are_made_under_the_views_of_a_release(reader: JournalReader) -> None:
    """A datasheet asks for tables while views hide what is pending; both belong to the connection."""
    with closed_only(reader):
        assert table2(reader, WEIGHTS).judged == 14  # one stands at a task that is pending again
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.connection.execute("DELETE FROM task")
