"""Baselines as controls: constant, two-valued, permuted and honest judges.

The expected result of each judge follows from its construction: only the honest one sees an unedited copy.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bench.scored_run import JUDGE, baselines, make_benchmark, make_run
from plantain.bench.generate.runfile import Arm
from plantain.cli import main

pytestmark = pytest.mark.usefixtures("no_figures")

MODELS = ("good", "poor")


def ea(kind: str, arm: Arm, i: int) -> float:
    rng = np.random.default_rng([i, *arm.label.encode()])
    if kind == "constant":  # the same answer, with the rounding of three draws in every other model
        return (0.7 + 0.7 + 0.7) / 3 if arm.label == "good" else 0.7
    if kind == "two-valued":
        return float(i % 2)
    worth = {"good": 0.8, "poor": 0.3, "ground-truth": 0.95}.get(arm.label, 0.05)
    if kind == "permuted":  # the honest values of a sample go to arms at random
        order = np.random.default_rng(i).permutation([0.8, 0.3, 0.95, 0.05, 0.05, 0.05])
        return float(
            order[["good", "poor", "ground-truth", "copy-input", "resize-only", "jpeg-75"].index(arm.label)]
        )
    return float(np.clip(worth + 0.03 * rng.standard_normal(), 0, 1))


@pytest.mark.parametrize("kind", ["constant", "two-valued", "permuted", "honest"])
def test_a_judge_that_confuses_copy_and_truth_gives_no_ranks(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = make_benchmark(tmp_path / "bench", ("Skin",), 24)
    arms = [*baselines(), *(Arm(name, name) for name in MODELS)]
    run = make_run(
        tmp_path / "run", bench, arms,
        lambda arm, i, k: {f"ea@{JUDGE}": ea(kind, arm, i), f"vq@{JUDGE}": ea(kind, arm, i)}, images=False,
    )  # fmt: skip
    assert main(["bench", "table", str(run), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert main(["bench", "table", str(run), "--to", str(tmp_path / "page")]) == 0
    document = json.loads((tmp_path / "page" / "leaderboard.json").read_text(encoding="utf-8"))
    html = (tmp_path / "page" / "leaderboard.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["bench", "table", str(run)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    blind = kind != "honest"
    for text in (rows[0]["warning"], " ".join(document["warnings"]), html, shown):
        assert ("cannot tell an unedited image from the truth" in text) == blind
    ranked = {
        row["model"]: row["rank_low"] for row in rows if (row["organ"], row["metric"]) == ("overall", "EA")
    }
    assert (ranked["good"], ranked["poor"]) == ((None, None) if blind else (1, 2))
    if blind:
        assert not any(row["mark"] for row in rows)


def test_differences_from_copy_input_and_from_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = make_benchmark(tmp_path / "bench", ("Skin",), 24)
    arms = [*baselines(), *(Arm(name, name) for name in MODELS)]
    run = make_run(
        tmp_path / "run", bench, arms, lambda arm, i, k: {f"ea@{JUDGE}": ea("honest", arm, i)}, images=False
    )
    bench_ids = [int(sample.id) - 1 for sample in bench.samples]
    arm_of = {arm.label: arm for arm in arms}
    for reference, options in (("copy-input", []), ("poor", ["--against", "poor"])):
        assert main(["bench", "table", str(run), "--to", str(tmp_path / reference), *options]) == 0
        rows = list(csv.DictReader((tmp_path / reference / "leaderboard.csv").read_text().splitlines()))
        row = next(r for r in rows if (r["model"], r["organ"], r["metric"]) == ("good", "overall", "EA"))
        by_hand = np.mean(
            [ea("honest", arm_of["good"], i) - ea("honest", arm_of[reference], i) for i in bench_ids]
        )
        assert float(row["difference"]) == pytest.approx(by_hand)
        assert float(row["difference_low"]) < by_hand < float(row["difference_high"])
        assert float(row["difference_p"]) <= float(row["difference_p_holm"]) < 0.05
        capsys.readouterr()
        assert main(["bench", "table", str(run), *options]) == 0
        assert f"minus {reference}" in capsys.readouterr().out
        latex = (tmp_path / reference / "leaderboard.tex").read_text()
        assert f"Mean difference from {reference} on" in latex
    assert main(["bench", "table", str(run), "--against", "god"]) == 2
    assert "--against god: no such model; did you mean 'good'" in capsys.readouterr().err
