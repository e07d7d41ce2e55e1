"""Table 7: fine-tuned editors and demonstrations in the prompt on one page, with the paper's numbers of samples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.scored_run import make_benchmark, make_run, plain_scores, shot_arms
from plantain.bench.generate.arms import Arm
from plantain.bench.leaderboard.learning import trained_label, write_learning
from plantain.cli import main
from plantain.records import InputError


def test_both_halves_of_table_seven_are_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = make_benchmark(tmp_path / "bench", ("Skin",), 12)
    trained = [Arm(trained_label(n, 0), "diffusers/m") for n in (0, 4, 8, 16)]
    tuned = make_run(tmp_path / "tuned", bench, trained, plain_scores, pictures=False)
    shown = shot_arms(tuple(sample.id for sample in bench.samples))
    few = make_run(tmp_path / "few", bench, shown, plain_scores, pictures=False)
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
