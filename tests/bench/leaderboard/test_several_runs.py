"""Several runs on one page: a leaderboard, and Table 7 with fine-tuned editors and demonstrations in the prompt."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.scored_run import (
    EXACT,
    JUDGE,
    WEAK,
    Made,
    baselines,
    make_benchmark,
    make_run,
    plain_scores,
    shot_arms,
)
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import Arm
from plantain.bench.leaderboard.learning import trained_label, write_learning
from plantain.bench.leaderboard.tables import OVERALL, Table
from plantain.cli import main
from plantain.records import InputError

pytestmark = pytest.mark.usefixtures("no_figures")

OTHER = Arm("other/model", "other/model")


@pytest.fixture(scope="module")
def second(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a second run of the same benchmark: one arm that the first run has too, and one more."""
    folder = tmp_path_factory.mktemp("runs") / "second"
    return make_run(folder, Benchmark.load(made.bench), [*baselines(), EXACT, OTHER], plain_scores)


def test_models_of_all_runs_are_rows_and_baselines_come_once(
    made: Made, second: Path, table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["bench", "table", str(made.run), str(second)]
    assert main([*command, "--to", str(tmp_path), "--json"]) == 0
    rows = {(r["model"], r["organ"], r["metric"]): r for r in json.loads(capsys.readouterr().out)}
    models = {model for model, _, _ in rows}
    alone = {arm.label for arm in table.scores.arms}
    assert models == alone | {f"{EXACT.label} (second)", OTHER.label}
    for label in (EXACT.label, WEAK.label, "copy-input"):  # a mean does not depend on other runs
        cell = table.cell(label, OVERALL, "EA")
        assert cell is not None
        assert rows[label, OVERALL, "EA"]["mean"] == cell.estimate.value
    # plain_scores depends on label, sample and k: the same arm has the same scores in both runs.
    assert rows[f"{EXACT.label} (second)", OVERALL, "EA"]["mean"] == rows[EXACT.label, OVERALL, "EA"]["mean"]
    document = json.loads((tmp_path / "leaderboard.json").read_text(encoding="utf-8"))
    pairs = {(pair["first"], pair["second"]) for pair in document["differences"]["EA"]}
    assert any({WEAK.label, OTHER.label} == set(pair) for pair in pairs)
    page = (tmp_path / "leaderboard.html").read_text(encoding="utf-8")
    # Two samples at least; each shows the input, the truth and the output of every arm but the ground truth.
    general = [arm for arm in table.general if arm.label != "ground-truth"]
    assert page.count('<figure class="shot') >= 2 * (2 + len(general) + 2)
    assert r"other/model &" in (tmp_path / "leaderboard.tex").read_text(encoding="utf-8")


def test_runs_that_cannot_share_a_table_are_refused_in_one_line(
    made: Made, second: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = make_benchmark(tmp_path / "bench", ("Skin",), 2)
    other = make_run(tmp_path / "run", bench, baselines(), lambda arm, i, k: {}, images=False)
    for run, complaint in ((other, "one table needs runs of the same benchmark"), (made.run, "given twice")):
        assert main(["bench", "table", str(made.run), str(run)]) == 2
        error = capsys.readouterr().err
        assert complaint in error and error.count("\n") == 1
    runs = []
    for name, version in (("a", "1"), ("b", "2")):
        run = make_run(tmp_path / name, bench, baselines(), lambda arm, i, k: {}, images=False)
        with closing(sqlite3.connect(run / "journal.sqlite")) as journal, journal:
            judges = json.dumps([{"label": JUDGE, "fingerprint": version}])
            journal.execute("INSERT INTO meta (key, value) VALUES ('bench.judges', ?)", (judges,))
        runs.append(str(run))
    assert main(["bench", "table", *runs]) == 2
    assert f"judge {JUDGE} scored it with other prompts or another version" in capsys.readouterr().err


def test_both_halves_of_table_seven_are_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = make_benchmark(tmp_path / "bench", ("Skin",), 12)
    trained = [Arm(trained_label(n, 0), "diffusers/m") for n in (0, 4, 8, 16)]
    tuned = make_run(tmp_path / "tuned", bench, trained, plain_scores, images=False)
    shown = shot_arms(tuple(sample.id for sample in bench.samples))
    few = make_run(tmp_path / "few", bench, shown, plain_scores, images=False)
    page = write_learning(tuned, tmp_path / "out", "a study", few).read_text(encoding="utf-8")
    left, right = page.index("Table 7 (a)"), page.index("Table 7 (b)")
    assert re.findall(r"<th>n = (\d+)</th>", page[left:right]) == ["0", "4", "8", "16"]
    assert main(["bench", "table", str(tuned), "--paper"]) == 0
    assert "Table 7 (a): training samples of each task\n" in capsys.readouterr().out
    assert re.findall(r"<th>shown = (\d+)</th>", page[right:]) == ["0", "1", "2"]
    alone = write_learning(tuned, tmp_path / "alone", "a study").read_text(encoding="utf-8")
    assert "Not measured" in alone[alone.index("Table 7 (b)") :]
    with pytest.raises(InputError, match="no study with several numbers of demonstrations"):
        write_learning(tuned, tmp_path / "wrong", "a study", tuned)
