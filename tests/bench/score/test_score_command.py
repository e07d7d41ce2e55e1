"""`plantain bench score` as a person meets it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench.discs import make_bench, make_run
from plantain.bench.generate.runfile import BenchRun
from plantain.cli import main
from plantain.cli.terminal.progress import time_left
from plantain.cli.terminal.stages import StageProgress
from plantain.records import InputError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("score")
    make_run(make_bench(folder / "bench"), folder / "run", ("planted/exact", "planted/repaint"))
    return folder / "run"


def test_offline_and_without_options_there_is_a_result(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "score", str(run), "--json", "--variant", "P"]) == 0
    said = json.loads(capsys.readouterr().out)
    kept = {row["metric"]: row for row in said["scores"]}
    assert kept["masked_ssim"]["scored"] == kept["ea@offline/instruments/P"]["scored"] == 18
    assert said["calls"] == {"made": 18, "replayed": 0}
    assert any("clip" in line for line in said["not_measured"])
    assert main(["bench", "score", str(run), "--json", "--variant", "P"]) == 0
    assert json.loads(capsys.readouterr().out)["stored"] == {"metrics": 0, "judges": 0, "sets": 0}


def test_the_benchmark_is_found_from_any_folder_and_when_both_were_moved(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # nothing lies here
    with BenchRun.open(run) as opened:
        assert opened.benchmark_root == run.parent / "bench"
    moved = tmp_path / "elsewhere"
    shutil.copytree(run.parent, moved)
    with BenchRun.open(moved / "run") as opened:
        assert opened.benchmark_root == moved / "bench", (
            "moved together: the one beside it, though the old one is there"
        )
        opened.header = replace(opened.header, root="/gone/bench", beside="../gone")
        with pytest.raises(InputError, match=r"/gone/bench: .*say where it is now with --bench"):
            opened.find_benchmark(None)
    assert main(["bench", "score", str(moved / "run"), "--metrics", "psnr", "--judge", "none"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--metrics", "psn"], "did you mean 'psnr'"),
        (["--judge", "offline/instrument"], "did you mean 'offline/instruments'"),
        (["--variant", "Q"], "choose P (prompt) or D"),
        (["--draws", "0"], "from 1 to 100"),
        (["--bench", "nowhere"], "nowhere"),
        (["--settings", "none.toml"], "no such settings file"),
    ],
)
def test_bad_options_are_one_line(
    run: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "score", str(run), *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_plain_lines_tell_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("plantain.cli.terminal.stages.PLAIN_EVERY_S", 0.0)
    with StageProgress() as progress:
        progress.begun("metrics", 3)
        progress.advanced(0)  # an earlier scoring had measured it
        progress.advanced(12)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "plantain: metrics: 1/3 samples"
    assert re.fullmatch(r"plantain: metrics: 2/3 samples, \d+(\.\d s each|/s), about \d+ s left", second)
    # 4 done in 10 s, 32 to come: 80 s; 50 in 10 s, 5 to come: 1 s
    assert time_left(4, 36, 100.0, 110.0) == "2.5 s each, about 80 s left"
    assert time_left(50, 55, 0.0, 10.0) == "5/s, about 1 s left"
    # one audited edit of thousands waited for the judge's processes: it says nothing of the rest
    assert time_left(1, 3300, 0.0, 45.6) == "45.6 s each"
    assert time_left(31, 3300, 0.0, 62.0) == "2.0 s each, about 1.8 h left"


def test_a_build_is_no_bench_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "score", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
