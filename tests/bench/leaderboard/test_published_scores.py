"""MedEBench's published scores: read strictly, and shown as a leaderboard."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.small_bench import made, small_bench
from plantain.bench.leaderboard.page import write_leaderboard
from plantain.bench.leaderboard.published import published_scores
from plantain.bench.leaderboard.tables import OVERALL, make_table
from plantain.cli import main
from plantain.records import InputError

pytestmark = pytest.mark.usefixtures("no_figures")

FILE = "published_scores.json"

EXAMPLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "medebench-examples"
needs_examples = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="the published examples are not next to the project"
)


def write(folder: Path, scores: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(scores), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two samples and two models in the published layout; one model's judge failed."""
    scores = {
        sample: {
            model: {"masked_ssim": cp, "gpt4o_editing_accuracy_detailed": 8.0 if cp == 0.9 else -1.0}
            for model, cp in (("Model One", 0.9), ("Model Two", 0.4))
        }
        for sample in ("7", "12")
    }
    return write(tmp_path, scores)


def test_scores_keep_their_meaning_and_failures_stay_unscored(folder: Path) -> None:
    table = make_table(published_scores(folder))
    assert [sample.id for sample in table.scores.samples] == ["7", "12"]
    accuracy = table.cell("Model One", OVERALL, "EA")
    assert accuracy is not None and accuracy.estimate.value == 0.8
    failed = table.cell("Model Two", OVERALL, "EA")
    assert failed is not None
    assert (failed.estimate.value, failed.coverage) == (None, 0.0)
    assert table.scores.missing["Model Two", "ea@gpt-4o/D"]["the published judge failed (-1)"] == 2
    assert [measure.name for measure in table.main] == ["EA", "CP"]


def test_models_are_matched_by_the_spelling_of_the_scores(folder: Path) -> None:
    ranks = folder / "human_ranked_scores.json"  # is read first
    ranks.write_text('{"Eyes": {"7": {"accuracy": {"model_one": 1, "model_two": 2, "Model One+": 3}}}}')
    scores = published_scores(folder)
    assert scores.values(scores.arm("Model One+"), "rank_ea")[0] == 3  # as MGIE and MGIE+: two models
    ranks.write_text('{"Eyes": {"7": {"accuracy": {"model_one": 1, "Model_One": 2}}}}')
    with pytest.raises(InputError, match="'Model_One' may be Model One or model_one"):
        published_scores(folder)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ([], "scores: expected numbers by sample, model and metric"),
        ({}, "no scores by sample"),
        ({"1": {"m": 3}}, "1, m: .*expected numbers by sample"),
        ({"1": {"m": {"ssim": 1}}}, "sample 1, m: ssim: not one of masked_ssim"),
        ({"1": {"m": {"masked_ssim": 7}}}, "masked_ssim: 7 is not from -1 to 1"),
        ({"1": {"m": {"masked_ssim": float("inf")}}}, "not 'Infinity'"),
        ({"1": {"m": {"accuracy": 1e300}}}, "accuracy: 1e[+]300 is not from 1 to"),
        (
            {"1": {"m": {"accuracy": 0.9}}},
            "accuracy: 0.9 .* ranks are numbers from 1; for scores use masked_ssim",
        ),
        (
            {"1": {"m": {"masked_ssim": 0.9, "accuracy": 1}}},
            "not one of accuracy.*; scores need .*masked_ssim",
        ),
    ],
)
def test_another_table_is_refused_with_its_fault(tmp_path: Path, table: object, complaint: str) -> None:
    with pytest.raises(InputError, match=f"{FILE}: .*{complaint}" if table else complaint):
        published_scores(write(tmp_path / "x", table))


def test_published_scores_are_printed_with_a_run_and_refused_as_ratings(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = small_bench(tmp_path / "bench", samples=2)
    run = tmp_path / "run"
    made(benchmark, run)
    assert main(["bench", "table", str(run), str(folder)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("copy-input") < printed.index("MedEBench, published numbers")
    assert "next:" not in printed  # --to is refused with published scores
    assert main(["bench", "table", str(benchmark.root)]) == 2
    assert f"is a benchmark, not a run; plantain bench generate {benchmark.root}" in capsys.readouterr().err
    assert main(["bench", "table", str(run), str(folder), "--json"]) == 2
    assert main(["bench", "rank", str(run), "--ratings", str(folder / FILE)]) == 2
    assert "no ranks by people; add a file of ranks" in capsys.readouterr().err


@needs_examples
def test_the_published_examples_make_a_report(tmp_path: Path) -> None:
    text = write_leaderboard([EXAMPLES], tmp_path / "out").read_text(encoding="utf-8")
    assert "Do not pass this page on" in text
    table = make_table(published_scores(EXAMPLES))
    best = table.cell("Gemini 2 Flash", OVERALL, "EA")
    assert best is not None and best.estimate.value == pytest.approx(np.mean([0.0, 0.9, 0.8, 0.5]))
    assert best.mark == ""  # four samples do not distinguish any models
