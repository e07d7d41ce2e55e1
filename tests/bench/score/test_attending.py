"""Attention grounding of a run, from planted maps to the page, and once through a real tiny editor."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from bench.small_bench import Brightener, small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.generate.arm_requests import ArmRequest
from plantain.bench.generate.arms import Arm
from plantain.bench.generate.generate import generate
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.failure_types import CutOffs, FailureType, failure_shares, sensitivity
from plantain.bench.leaderboard.grounding_page import grounding_rows, typings, write_grounding
from plantain.bench.leaderboard.table_rows import read_scores
from plantain.bench.score.attending import Measuring, attend, attended_arms, map_path
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.models.frames import Frame, FramePolicy
from plantain.pixels.arrays import Pixels
from plantain.records import InputError
from plantain.runs.engine import stored_state
from plantain.runs.observer import ProgressObserver
from plantain.runs.settings.terms import Terms

ARM = "diffusers/planted"


@dataclass
class PlantedLook:
    attention: np.ndarray | None
    frame: Frame
    tokens: tuple[int, ...] = (3,)
    edited: Pixels | None = None
    what: str = "planted attention"
    reason: str = ""

    def on_image(self) -> np.ndarray:
        assert self.attention is not None
        return self.attention


@dataclass
class Planted:
    """Looks at the right disc of some samples and at the corner of others; sees nothing in sample 4."""

    asked: list[str] = field(default_factory=list)

    names_sides = False

    async def look(
        self, pixels: Pixels, instruction: str, seed: int, concept: str, parameters: dict[str, float]
    ) -> PlantedLook:
        self.asked.append(instruction)
        height, width = pixels.shape[:2]
        frame = FramePolicy().frame(width, height)
        number = int(instruction.rstrip(".").split()[-1])
        if number == 4:
            return PlantedLook(None, frame, (), reason="the model does not see 'disc' in its prompt")
        y, x = np.mgrid[:height, :width]
        centre = (height / 2 - (number - 1) % 5, width / 2) if number % 2 else (0, 0)
        distance = np.hypot(y - centre[0], x - centre[1])
        return PlantedLook(np.exp(-((distance / 16) ** 4)).astype(np.float32), frame)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Benchmark]:
    """A run with outputs and metrics of an editor that calls itself open."""
    folder = tmp_path_factory.mktemp("attend")
    plain = small_bench(folder / "plain", 6, tasks=2)
    with BenchmarkWriter(folder / "bench", "Discs") as writer:
        for sample in plain.samples:
            named = replace(sample, key_concept="disc")
            writer.add(named, plain.previous(sample), plain.changed(sample), plain.roi(sample))
    benchmark = Benchmark.load(folder / "bench")
    wanted = ArmRequest(own={ARM: Brightener(name=ARM)})
    asyncio.run(generate(benchmark, folder / "run", wanted, Terms(wanted.models)))
    asyncio.run(score_run(folder / "run", benchmark, ScoreRequest(metrics=["masked_ssim"])))
    return folder / "run", benchmark


@pytest.fixture
def made(generated: tuple[Path, Benchmark], tmp_path: Path) -> tuple[Path, Benchmark]:
    """A copy of that run, for one test to measure in."""
    return Path(shutil.copytree(generated[0], tmp_path / "made")), generated[1]


def test_maps_are_measured_once_and_kept(made: tuple[Path, Benchmark]) -> None:
    run, benchmark = made
    watched = Planted()
    first = asyncio.run(attend(run, benchmark, ARM, watched, Measuring()))
    assert (first.measured, first.kept, len(watched.asked)) == (6, 0, 6)
    again = asyncio.run(attend(run, benchmark, ARM, watched, Measuring()))
    assert (again.measured, again.kept, len(watched.asked)) == (0, 6, 6)
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
        arm = opened.arms[ARM]
    values = scores.values(arm, "attention_iou")
    assert np.all(values[[0, 2, 4]] > 0.5)  # odd numbers look at their disc
    assert np.all(values[[1, 5]] < 0.05)
    assert np.isnan(values[3])
    assert scores.missing[ARM, "attention_iou"] == {"the model does not see 'disc' in its prompt": 1}
    assert map_path(run, arm, "1", 0).is_file()
    map_path(run, arm, "1", 0).unlink()
    assert asyncio.run(attend(run, benchmark, ARM, watched, Measuring())).measured == 1
    changed = asyncio.run(attend(run, benchmark, ARM, watched, Measuring(alpha=1.0)))
    assert changed.measured == 6
    asyncio.run(attend(run, benchmark, ARM, watched, Measuring()))


def test_a_concept_that_was_named_anew_is_measured_anew(tmp_path: Path) -> None:
    plain = small_bench(tmp_path / "plain", 3)

    def named(folder: Path, concepts: tuple[str, ...]) -> Benchmark:
        with BenchmarkWriter(folder, "Discs") as writer:
            for sample, concept in zip(plain.samples, concepts, strict=True):
                writer.add(
                    replace(sample, key_concept=concept),
                    plain.previous(sample),
                    plain.changed(sample),
                    plain.roi(sample),
                )
        return Benchmark.load(folder)

    wanted = ArmRequest(own={ARM: Brightener(name=ARM)})
    for folder, concepts, measured in (("a", ("disc",) * 3, 3), ("b", ("disc", "bright disc", "disc"), 1)):
        benchmark = named(tmp_path / folder, concepts)
        asyncio.run(generate(benchmark, tmp_path / "run", wanted, Terms(wanted.models)))
        found = asyncio.run(attend(tmp_path / "run", benchmark, ARM, Planted(), Measuring()))
        assert found.measured == measured


def test_a_stop_keeps_what_is_done(made: tuple[Path, Benchmark]) -> None:
    run, benchmark = made
    watched = Planted()

    class Stopping(ProgressObserver):
        def advanced(self, stored: int) -> None:
            if len(watched.asked) == 2:
                os.kill(os.getpid(), signal.SIGINT)

    part = asyncio.run(attend(run, benchmark, ARM, watched, Measuring(size="latent"), observer=Stopping()))
    assert 2 <= part.measured < 6 and part.stopped == "interrupted"
    rest = asyncio.run(attend(run, benchmark, ARM, watched, Measuring(size="latent")))
    assert (rest.measured, rest.kept) == (6 - part.measured, part.measured)


def test_table_four_types_and_page(made: tuple[Path, Benchmark], tmp_path: Path) -> None:
    run, benchmark = made
    asyncio.run(attend(run, benchmark, ARM, Planted(), Measuring()))
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
    rows = grounding_rows(scores)
    assert [(row.organ, row.task) for row in rows] == [
        ("overall", ""),
        ("Eyes", ""),
        ("Eyes", "Task 0"),
        ("Eyes", "Task 1"),
    ]
    by_task = {row.task: row.estimates for row in rows if row.task}
    assert by_task["Task 0"]["iou"].value is not None
    assert by_task["Task 0"]["iou"].value > 0.5 > 0.1 > (by_task["Task 1"]["iou"].value or 0.0)
    assert typings(scores, None, CutOffs()) == []  # no judge has scored anything
    page = write_grounding(run, benchmark, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "Table 4" in text
    assert text.count("data:image/jpeg") >= 5
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    rows_said = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["rows"]
    assert {row["metric"] for row in rows_said} >= {"attention_iou", "attention_chance", "attention_auroc"}
    assert text == write_grounding(run, benchmark, tmp_path).read_text(encoding="utf-8")


def test_failures_are_told_apart_and_the_cut_offs_matter() -> None:
    ea = np.array([0.9, 0.1, 0.1, 0.1, np.nan])
    cp = np.array([0.9, 0.3, 0.95, 0.95, 0.9])
    iou = np.array([0.1, 0.5, 0.5, 0.02, 0.5])
    shares = failure_shares(ea, cp, iou, CutOffs())
    assert [shares.counts[kind] for kind in FailureType] == [1, 1, 1, 1]
    assert shares.unknown == 1
    around = sensitivity(ea, cp, iou, CutOffs(iou=0.45))
    seen = {one.counts[FailureType.LOOKED_THERE] for one in around}
    assert seen == {0, 1}
    assert len(around) == 27


def test_what_cannot_be_watched_is_one_line(made: tuple[Path, Benchmark], tmp_path: Path) -> None:
    run, benchmark = made
    with BenchRun.open(run) as opened:
        assert [arm.label for arm in attended_arms(opened, ())] == [ARM]
        with pytest.raises(InputError, match="no such arm"):
            attended_arms(opened, ("diffusers/other",))
        with pytest.raises(InputError, match="only open editors"):
            attended_arms(opened, ("copy-input",))
    for wrong, said in ((Measuring(alpha=0.0), "--alpha"), (Measuring(size="small"), "--size")):
        with pytest.raises(InputError, match=said):
            asyncio.run(attend(run, benchmark, ARM, Planted(), wrong))
    other = small_bench(tmp_path / "other", 2)
    with pytest.raises(InputError, match="not the benchmark"):
        asyncio.run(attend(run, other, ARM, Planted(), Measuring()))


@pytest.mark.slow
@pytest.mark.usefixtures("devices_here")
def test_a_tiny_editor_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The watched edit is the stored one, to one grey level."""
    pytest.importorskip("torch", reason="needs the torch extra")
    pytest.importorskip("diffusers", reason="needs the torch extra")
    from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix

    plain = small_bench(tmp_path / "plain", 2, size=(96, 80))
    with BenchmarkWriter(tmp_path / "bench", "Discs") as writer:
        for sample in plain.samples:
            writer.add(
                replace(sample, key_concept="disc"),
                plain.previous(sample),
                plain.changed(sample),
                plain.roi(sample),
            )
    tiny_instruct_pix2pix(seed=0, words=("disc",)).save_pretrained(tmp_path / "model")
    settings = tmp_path / "settings.toml"
    settings.write_text('[providers.diffusers]\ndevice = "cpu"\nsteps = 2\nside = 96\n', encoding="utf-8")
    run, editor = str(tmp_path / "run"), f"diffusers/{tmp_path / 'model'}"
    with_settings = ["--settings", str(settings)]
    bench = str(tmp_path / "bench")
    assert main(["bench", "generate", bench, "--run", run, "--editor", editor, *with_settings]) == 0
    capsys.readouterr()
    there = shutil.copytree(run, tmp_path / "there")
    assert main(["bench", "attend", run, *with_settings, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    overall = [row for row in said["rows"] if row["organ"] == "overall" and row["metric"] == "attention_iou"]
    assert [(row["n"], row["coverage"]) for row in overall] == [(2, 1.0)]
    with JournalReader.open(Path(run)) as reader:
        details = reader.connection.execute(
            "SELECT detail FROM score WHERE metric = 'attention_iou'"
        ).fetchall()
    differs = [json.loads(text)["differs"] for (text,) in details]
    assert max(differs) <= 1
    assert main(["bench", "attend", run]) == 2  # other settings than it was generated with
    assert "the same --settings" in capsys.readouterr().err
    pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")
    with settings.open("a", encoding="utf-8") as file:
        file.write('[engine]\naddress = "local"\nworkers = 1\n')
    assert main(["bench", "attend", str(there), *with_settings, "--engine", "ray"]) == 0
    assert attention_of(there) == attention_of(Path(run))
    with JournalReader.open(there) as reader:
        engine = stored_state(reader)
    assert engine is not None and (engine["kind"], engine["done"]) == ("ray", 2)


def attention_of(run: Path) -> tuple[list[tuple[object, ...]], dict[str, bytes]]:
    """Scores with their details, and maps."""
    query = "SELECT task, generation, round, metric, value, reason, detail FROM score ORDER BY task, metric"
    with JournalReader.open(run) as reader:
        rows = reader.connection.execute(query).fetchall()
    assert rows
    maps = sorted((run / "attention").rglob("*.png"))
    return rows, {str(path.relative_to(run)): path.read_bytes() for path in maps}


def test_arms_say_nothing_of_attention_until_it_is_measured(tmp_path: Path) -> None:
    benchmark = small_bench(tmp_path / "bench", 2)
    asyncio.run(generate(benchmark, tmp_path / "run", ArmRequest(), Terms(())))
    with BenchRun.open(tmp_path / "run") as opened:
        assert isinstance(next(iter(opened.arms.values())), Arm)
        with pytest.raises(InputError, match="no outputs of an open editor"):
            attended_arms(opened, ())
    with pytest.raises(InputError, match="no attention has been measured"):
        write_grounding(tmp_path / "run", benchmark, tmp_path)
