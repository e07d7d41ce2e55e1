"""A leaderboard's numbers, counted by hand, and the files that scripts read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.scored_run import EXACT, SWEPT, WEAK, ScoresOf, make_benchmark, make_run, plain_scores
from plantain.bench.generate.runfile import Arm, BenchRun, GridPoint
from plantain.bench.leaderboard.export import table_csv, table_json, table_two
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.studies import shot_studies, sweeps
from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell, make_table
from plantain.journal.cards import Standing
from plantain.records import Gate, JudgeCard


def cell(table: Table, model: str, measure: str, organ: str = OVERALL) -> TableCell:
    found = table.cell(model, organ, measure)
    assert found is not None
    return found


def tabled(folder: Path, samples: int, arms: Sequence[Arm], scores: ScoresOf) -> Table:
    """Return the table of a run of one organ, two samples a source."""
    bench = make_benchmark(folder / f"bench{samples}", ("Skin",), samples)
    run = make_run(folder / f"run{samples}", bench, arms, scores, images=False)
    with BenchRun.open(run) as opened:
        return make_table(read_scores(opened))


def test_an_editor_that_receives_the_region_is_marked_in_print(scores: Scores) -> None:
    arms = tuple(replace(arm, region=arm.label in (EXACT.label, "copy-input")) for arm in scores.arms)
    marked = [
        line for line in table_two(make_table(replace(scores, arms=arms))).splitlines() if "region)" in line
    ]
    assert marked and all(line.startswith(f"{EXACT.label} (receives the region) &") for line in marked)


def test_overall_is_the_mean_of_samples(table: Table) -> None:
    values = [plain_scores(WEAK, i, 0)["masked_ssim"] for i in range(24)]
    overall = cell(table, WEAK.label, "CP (strict)")
    assert overall.estimate.value == pytest.approx(np.mean([v for v in values if v is not None]))
    assert (overall.estimate.n, overall.samples, overall.estimate.clusters) == (23, 24, 12)
    assert overall.coverage == pytest.approx(23 / 24)


def test_settings_of_a_sweep_are_compared_on_the_same_samples(tmp_path: Path) -> None:
    # The higher guidance is worse on every sample; on the hardest one it was refused.
    arm = Arm("a", "a", grid=tuple(GridPoint(0, {"guidance": g}) for g in (5.0, 7.5)))

    def scores(arm: Arm, i: int, k: int) -> dict[str, float | None]:
        return {"ea@j/D": None if (i, k) == (0, 1) else (0.1 if i == 0 else 0.9) - 0.05 * k}

    low, high = (point.estimates["EA"] for point in sweeps(tabled(tmp_path, 4, [arm], scores))["a"])
    assert (low.n, high.n) == (3, 3)
    assert (low.value, high.value) == (pytest.approx(0.9), pytest.approx(0.85))


def test_differences_are_over_the_common_samples(table: Table) -> None:
    pairs = {(pair.first, pair.second): pair.estimate for pair in table.differences["CP (strict)"]}
    assert len(pairs) == 6  # four models; no baseline, no arm of a study
    of = {arm.label: [plain_scores(arm, i, 0)["masked_ssim"] for i in range(24)] for arm in (EXACT, WEAK)}
    by_hand = [a - b for a, b in zip(of[EXACT.label], of[WEAK.label], strict=True) if a and b]
    found = pairs[EXACT.label, WEAK.label]
    assert (found.value, found.n) == (pytest.approx(np.mean(by_hand)), 23)


def test_a_study_pairs_every_number_of_shots_with_the_fewest(table: Table) -> None:
    found = shot_studies(table)
    assert list(found) == ["gemini/m"]
    rows = found["gemini/m"]
    line = [row for row in rows if row.task == "" and row.metric == "CP (strict)"]
    assert [row.shots for row in line] == [0, 1, 2]
    assert line[0].change is None
    assert line[2].change is not None
    assert line[2].change.value == pytest.approx(
        (line[2].estimate.value or 0) - (line[0].estimate.value or 0)
    )
    assert line[2].change.value < -0.08
    assert line[2].differs
    assert {row.metric for row in rows} == {"EA", "CP", "CP (strict)", "VQ"}


def test_a_sweep_has_a_mean_for_each_setting(table: Table) -> None:
    ((label, points),) = sweeps(table).items()
    assert label == SWEPT.label
    assert [point.setting for point in points] == [
        f"guidance {g}, image_guidance {i}" for g in ("5", "7.5") for i in ("1.5", "1.8", "2")
    ]
    # plain_scores gives 0.3 + 0.05 k to the k-th setting
    assert [point.estimates["EA"].value for point in points] == [
        pytest.approx(0.3 + 0.05 * k, abs=0.03) for k in range(6)
    ]


def test_json_and_csv_have_a_row_per_cell(table: Table) -> None:
    rows = table_json(table.cells.values(), table)
    assert {"model", "organ", "metric", "mean", "low", "high", "n", "coverage"} <= set(rows[0])
    keys = [(row["model"], row["organ"], row["metric"]) for row in rows]
    assert len(keys) == len(set(keys))
    assert {row["organ"] for row in rows} == {"Skin", "Eyes", "Teeth", OVERALL}
    json.dumps(rows, allow_nan=False)
    lines = list(csv.DictReader(io.StringIO(table_csv(table))))
    assert len(lines) == len(table.cells) + len(table.tasks)
    assert {row["task"] for row in lines} == {"", "Task 0", "Task 1"}


def test_a_judge_that_fails_its_gate_marks_no_best_and_ranks_nothing(table: Table) -> None:
    assert table.judge is not None and table.card_lines
    assert "no card" in table.card_lines[0] and not table.barred
    assert any(cell.mark for cell in table.cells.values() if cell.metric == "EA")
    failed = JudgeCard("any/judge", "1", "medebench", Gate(False, False, ("n = 4",)))
    standings = {table.judge: Standing("any/judge", failed, failed.line)}
    again = make_table(replace(table.scores, standings=standings), table.judge)
    judged = [cell for cell in again.cells.values() if cell.metric in ("EA", "VQ")]
    assert judged and not any(cell.mark or cell.rank for cell in judged)
    assert {"EA", "VQ"} <= again.barred and "CP" not in again.barred
    assert again.card_lines == ("any/judge: not shown to be reliable (n = 4)",)
    rows = {row["metric"]: row["card"] for row in table_json(again.cells.values(), again)}
    assert rows["EA"] == "any/judge: not shown to be reliable (n = 4)" and rows["CP"] == ""
    assert "Judge's card: any/judge: not shown to be reliable" in table_two(again)


def test_latex_has_a_line_per_model(table: Table) -> None:
    text = table_two(table)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    assert r"\textbf{" in text
    line = next(line for line in text.splitlines() if line.startswith("planted/exact"))
    assert line.count("&") == 4 * 4 and line.endswith(r"\\")


def test_models_are_ranked_by_differences_and_not_with_few_sources(tmp_path: Path) -> None:
    # a and b are alike, c is far behind: a and b have place 1 or 2, c has 3. Recorded in another order.
    noise = np.random.default_rng(3).normal(0, 0.05, (3, 24))
    means = {"c": 0.2, "b": 0.6, "a": 0.61}
    arms = [Arm(name, name) for name in means]

    def scores(arm: Arm, i: int, k: int) -> dict[str, float | None]:
        return {"ea@j/D": means[arm.label] + float(noise[list(means).index(arm.label), i])}

    table = tabled(tmp_path, 24, arms, scores)
    ranks = {name: cell(table, name, "EA").rank for name in "abc"}
    assert ranks == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}
    first = max("ab", key=lambda name: cell(table, name, "EA").estimate.value or 0.0)
    assert [arm.label for arm in table.general] == [first, "ab".replace(first, ""), "c"]
    assert rf"[{cell(table, 'c', 'EA').estimate.low:.2f}, " in table_two(table)
    few = tabled(tmp_path, 8, arms, scores)
    assert [arm.label for arm in few.general] == list(means)  # as recorded
    assert {(one.rank, one.mark) for one in few.cells.values()} == {(None, "")}
    assert "unranked" in table_two(few)
