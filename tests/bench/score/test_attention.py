"""Attention grounding of a run, from planted maps to the page, and once through a real tiny editor."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.small_bench import Brightener, by, small_bench
from bench.small_bench import made as made_here
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.attention_page import (
    FailureType,
    failure_row,
    failure_rows,
    grounding_rows,
    write_attention_page,
)
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.tables import make_table
from plantain.bench.score.attention import map_path, measure_attention
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pixels.arrays import Pixels
from plantain.runs.progress import ProgressObserver, RunSummary

ARM = "diffusers/planted"


@dataclass
class PlantedLook:
    attention: np.ndarray | None
    tokens: tuple[int, ...] = (3,)
    edited: Pixels | None = None
    what: str = "planted attention"
    reason: str = ""

    def on_image(self) -> np.ndarray:
        assert self.attention is not None
        return self.attention


@dataclass
class Planted:
    """A model that sees the right disc of some samples, the corner of others, and nothing in sample 4."""

    asked: list[str] = field(default_factory=list)

    names_sides = False

    async def look(
        self, pixels: Pixels, instruction: str, seed: int, concept: str, parameters: dict[str, float]
    ) -> PlantedLook:
        self.asked.append(instruction)
        height, width = pixels.shape[:2]
        number = int(instruction.rstrip(".").split()[-1])
        if number == 4:
            return PlantedLook(None, (), reason="the model does not see 'disc' in its prompt")
        y, x = np.mgrid[:height, :width]
        centre = (height / 2 - (number - 1) % 5, width / 2) if number % 2 else (0, 0)
        distance = np.hypot(y - centre[0], x - centre[1])
        return PlantedLook(np.exp(-((distance / 16) ** 4)).astype(np.float32))


def look(run: Path, benchmark: Benchmark, watched: Planted, **more: Any) -> RunSummary:
    return asyncio.run(measure_attention(run, benchmark, ARM, watched, **more))


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Benchmark]:
    """Make a run with outputs and metrics of an editor that calls itself open."""
    folder = tmp_path_factory.mktemp("attention")
    benchmark = small_bench(folder / "bench", 6, tasks=2, concepts=["disc"] * 6)
    made_here(benchmark, folder / "run", by(Brightener(name=ARM)))
    asyncio.run(score_run(folder / "run", benchmark, ScoreRequest(metrics=["masked_ssim"])))
    return folder / "run", benchmark


@pytest.fixture
def made(generated: tuple[Path, Benchmark], tmp_path: Path) -> tuple[Path, Benchmark]:
    """Return a copy of that run, for one test to measure in."""
    return Path(shutil.copytree(generated[0], tmp_path / "made")), generated[1]


def test_maps_are_measured_once_and_kept(made: tuple[Path, Benchmark]) -> None:
    run, benchmark = made
    watched = Planted()
    first = look(run, benchmark, watched)
    assert (first.measured, first.kept, len(watched.asked)) == (6, 0, 6)
    again = look(run, benchmark, watched)
    assert (again.measured, again.kept, len(watched.asked)) == (0, 6, 6)
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
        arm = opened.arms[ARM]
    values = scores.values(arm, "attention_iou")
    assert np.all(values[[0, 2, 4]] > 0.5)  # odd numbers look at their disc
    assert np.all(values[[1, 5]] < 0.05)
    assert np.isnan(values[3])
    assert scores.missing[ARM, "attention_iou"] == {"the model does not see 'disc' in its prompt": 1}
    map_path(run, arm, "1", 0).unlink()
    assert look(run, benchmark, watched).measured == 1


def test_a_renamed_concept_is_measured_again(tmp_path: Path) -> None:
    for folder, concepts, measured in (("a", ("disc",) * 3, 3), ("b", ("disc", "bright disc", "disc"), 1)):
        benchmark = small_bench(tmp_path / folder, 3, concepts=concepts)
        made_here(benchmark, tmp_path / "run", by(Brightener(name=ARM)))
        assert look(tmp_path / "run", benchmark, Planted()).measured == measured


def test_a_stop_keeps_finished_measurements(made: tuple[Path, Benchmark]) -> None:
    run, benchmark = made
    watched = Planted()

    class Stopping(ProgressObserver):
        def advanced(self, stored: int) -> None:
            if len(watched.asked) == 2:
                os.kill(os.getpid(), signal.SIGINT)

    part = look(run, benchmark, watched, observer=Stopping())
    assert 2 <= part.measured < 6 and part.stopped == "interrupted"
    rest = look(run, benchmark, watched)
    assert (rest.measured, rest.kept) == (6 - part.measured, part.measured)


def test_table_four_types_and_page(
    made: tuple[Path, Benchmark], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, benchmark = made
    look(run, benchmark, Planted())
    with BenchRun.open(run) as opened:
        table = make_table(read_scores(opened))
    rows = grounding_rows(table)
    groups = [("overall", ""), ("Eyes", ""), ("Eyes", "Task 0"), ("Eyes", "Task 1")]
    assert [(row[0].organ, row[0].task) for row in rows] == groups
    overlap = {iou.task: iou.estimate.value or 0.0 for iou, _ in rows}
    assert overlap["Task 0"] > 0.5 > 0.1 > overlap["Task 1"]
    assert failure_rows(table) == []  # no judge has scored anything
    assert main(["bench", "table", str(run), "--paper"]) == 0
    printed = capsys.readouterr().out
    assert "\nTable 4: attention and region\n" in printed
    assert f"missing from Table 4: {ARM}: 1 without a map: the model does not see 'disc'" in printed
    page = write_attention_page(run, benchmark, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "Table 4" in text
    assert text.count("data:image/jpeg") >= 5
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    rows_listed = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["rows"]
    assert {row["metric"] for row in rows_listed} == {"attention_iou", "attention_chance"}
    assert text == write_attention_page(run, benchmark, tmp_path).read_text(encoding="utf-8")


def test_failures_are_distinguished() -> None:
    ea = np.array([0.9, 0.1, 0.1, 0.1, np.nan])
    cp = np.array([0.9, 0.3, 0.95, 0.95, 0.9])
    iou = np.array([0.1, 0.5, 0.5, 0.02, 0.5])
    row = failure_row("m", ea, cp, iou)
    assert [row.counts[kind] for kind in FailureType] == [1, 1, 1, 1]
    assert row.unscored == 1


@pytest.mark.slow
@pytest.mark.usefixtures("devices_here")
def test_a_tiny_editor_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The repeated edit is the stored one, to one grey level."""
    pytest.importorskip("torch", reason="needs the torch extra")
    pytest.importorskip("diffusers", reason="needs the torch extra")
    from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix

    small_bench(tmp_path / "bench", 2, size=(96, 80), concepts=["disc", "disc"])
    tiny_instruct_pix2pix(seed=0, words=("disc",)).save_pretrained(tmp_path / "model")
    settings = tmp_path / "settings.toml"
    settings.write_text('[providers.diffusers]\ndevice = "cpu"\nsteps = 2\nside = 96\n', encoding="utf-8")
    run, editor = str(tmp_path / "run"), f"diffusers/{tmp_path / 'model'}"
    with_settings = ["--settings", str(settings)]
    bench = str(tmp_path / "bench")
    assert main(["bench", "generate", bench, "--run", run, "--editor", editor, *with_settings]) == 0
    capsys.readouterr()
    assert main(["bench", "attention", run, *with_settings, "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    overall = [row for row in got["rows"] if row["organ"] == "overall" and row["metric"] == "attention_iou"]
    assert [(row["n"], row["coverage"]) for row in overall] == [(2, 1.0)]
    with JournalReader.open(Path(run)) as reader:
        rows = reader.connection.execute("SELECT detail FROM score").fetchall()
    assert rows and all(json.loads(detail)["differs"] <= 1 for (detail,) in rows)
    assert main(["bench", "attention", run]) == 2  # other settings than it was generated with
    assert "the same --settings" in capsys.readouterr().err
