"""Human ratings: files read strictly, ranks compared with ties as ties, agreement of the raters."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from bench.scored_run import make_benchmark, make_run
from plantain.bench.generate.runfile import Arm, BenchRun
from plantain.bench.leaderboard.humans import read_ratings
from plantain.bench.leaderboard.ranking import consensus, rank
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.tables import Table, make_table
from plantain.cli import main
from plantain.records import InputError

MODELS = ("a", "b", "c", "d")
SAMPLES = 24


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 24 samples, four models; `ssim` follows a hidden worth, `lpips` is its opposite, `psnr` is noise."""
    folder = tmp_path_factory.mktemp("ranked")
    bench = make_benchmark(folder / "bench", ("Skin", "Eyes"), SAMPLES // 2)

    def scores(arm: Arm, i: int, k: int) -> dict[str, float | None]:
        rng = np.random.default_rng([i, ord(arm.label)])
        good = worth(arm.label, i)
        return {"ssim": good, "lpips": 1.0 - good, "psnr": float(rng.normal(30, 3))}

    return make_run(folder / "run", bench, [Arm(name, name) for name in MODELS], scores, images=False)


def worth(model: str, i: int) -> float:
    return float(0.2 + 0.15 * ((MODELS.index(model) + i) % 4))


@pytest.fixture(scope="module")
def table(run: Path) -> Table:
    with BenchRun.open(run) as opened:
        return make_table(read_scores(opened))


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def rated(path: Path, noise: float, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(SAMPLES):
        for model in MODELS:
            score = round(10 * worth(model, i) + noise * rng.normal())
            rows.append({"sample": i + 1, "model": model, "EA": score, "note": "x, y"})
    return write(path, rows)


def test_correlations_agree_with_scipy_image_by_image(table: Table, tmp_path: Path) -> None:
    """Of `psnr`, which is noise; `lpips` is the opposite of `ssim`, and is turned round."""
    file = rated(tmp_path / "cleo.csv", 1.5, 5)
    ids = [s.id for s in table.scores.samples]
    ratings = read_ratings([file], ids, list(MODELS))
    found = {row.metric: row for row in rank(table, ratings).rows}
    metric = np.stack([table.scores.values(table.scores.arm(m), "psnr") for m in MODELS], axis=1)
    people = ratings.values["EA"][0]
    ties = [i for i in range(SAMPLES) if len(set(people[i])) > 1]
    rho = np.mean([spearmanr(metric[i], people[i]).statistic for i in ties])
    assert found["psnr"].found.spearman.value == pytest.approx(rho, abs=1e-12)
    assert (found["ssim"].found.spearman.value or 0) == pytest.approx(found["lpips"].found.spearman.value)
    assert found["ssim"].found.spearman.clusters == 12


def test_ranks_and_scores_give_the_same_consensus(table: Table, tmp_path: Path) -> None:
    order = {m: i for i, m in enumerate(MODELS)}
    scores = write(tmp_path / "s.csv", [{"sample": "1", "model": m, "VQ": -order[m]} for m in MODELS])
    ranks = write(tmp_path / "r.csv", [{"MODEL": m, "Sample": "1", "vq_rank": order[m] + 1} for m in MODELS])
    ids = [s.id for s in table.scores.samples]
    read = [consensus(read_ratings([file], ids, list(MODELS)).values["VQ"]) for file in (scores, ranks)]
    np.testing.assert_array_equal(*read)
    assert read[0][0].tolist() == [1.0, pytest.approx(2 / 3), pytest.approx(1 / 3), 0.0]
    assert np.isnan(read[0][1]).all()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sample,model,EA\n1,a,x\n", "line 2: ea: 'x' is not a number; leave it empty if not rated"),
        ("sample,model,EA\n99,a,1\n", "line 2: sample: this run has no '99'"),
        ("sample,model,EA\n1,a,1\n1,a,2\n", "line 3: sample '1' of 'a' was rated in line 2 already"),
        ("sample,model,EA\n1,a,2,3\n", "line 2: 4 cells under 3 columns"),
        ("sample;model;EA\n1;a;x\n", "line 2: ea: 'x' is not a number"),
        ("sample,model\n1,a\n", "line 1: no ratings; add a column EA, CP or VQ"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "ana.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_ratings([file], ["1"], list(MODELS))
    assert str(caught.value).startswith(str(file))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_prints_table_three(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(rated(tmp_path / f"{name}.csv", 1.0, seed)) for seed, name in enumerate(("ana", "ben"))]
    assert main(["bench", "rank", str(run), "--ratings", files[0], files[1], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["raters"] == ["ana", "ben"]
    assert {row["metric"] for row in printed["rows"]} == {"ssim", "psnr", "lpips"}
    assert main(["bench", "rank", str(run), "--ratings", files[0], "--ratings", files[1]]) == 0
    assert "agreement of ana and ben in EA: +" in capsys.readouterr().out
    assert main(["bench", "rank", str(run), "--ratings", files[0]]) == 0
    assert "one rater" in capsys.readouterr().out
    assert main(["bench", "rank", str(run)]) == 2
    assert "name a CSV file for each rater" in capsys.readouterr().err


def test_organs_have_the_scores_of_the_published_protocol(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was judged by MedEBench's protocol alone has Accuracy_D (Table 3), not our EA."""
    bench = make_benchmark(tmp_path / "bench", ("Skin", "Eyes"), SAMPLES // 2)
    arms = [Arm(name, name) for name in MODELS]
    name = "ea:published@openai/m/D"
    run = make_run(tmp_path / "run", bench, arms, lambda arm, i, k: {name: worth(arm.label, i)}, images=False)
    assert main(["bench", "rank", str(run), "--ratings", str(rated(tmp_path / "ana.csv", 0.0, 1))]) == 0
    organs = [line for line in capsys.readouterr().out.splitlines() if "Skin" in line or "Eyes" in line]
    assert len(organs) == 2 and all("+1.00" in line for line in organs)
