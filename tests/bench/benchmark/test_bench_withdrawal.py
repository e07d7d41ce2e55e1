"""Withdrawing a patient also from a benchmark made of a build, from its runs, and from trained models."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench.small_bench import Brightener
from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.bench.benchmark import native_format
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.from_build import benchmark_from_build
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.journal import JournalReader, verify
from plantain.metrics.metric import Networks
from plantain.pipeline.run import run_build
from plantain.records import Consent, Licence
from plantain.runs.terms import Terms
from plantain.train.finished import DONE, write_json

GONE, STAYS = "patient:10000032", "patient:10000048"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build on two patients' images, a benchmark of it, a scored run with its page, and two trainings."""
    root = tmp_path_factory.mktemp("far")
    quick_catalogue(root / "plain", 4)
    with Catalogue.open(root / "plain") as plain, Catalogue.create(root / "catalogue") as catalogue:
        for number, image in enumerate(plain.images()):
            group = GONE if number < 2 else STAYS
            allowed = Consent("the owner", "a letter")
            changed = replace(image, group=group, licence=Licence.CREDENTIALED, consent=allowed)
            catalogue.add(changed, plain.read(image), bytes(32))
    recipe = quick_recipe(root / "catalogue", findings=("AMD", "Cataract"))
    asyncio.run(run_build(recipe, root / "run", method=quick_method(CallLog(None), max_rounds=3)))
    benchmark_from_build(root / "run", root / "bench")
    bench = Benchmark.load(root / "bench")
    editor = Brightener()
    wanted = ArmRequest(own={editor.name: editor})
    asyncio.run(generate(bench, root / "bench-run", wanted, Terms(wanted.models)))
    asyncio.run(score_run(root / "bench-run", bench, ScoreRequest(["psnr"], networks=Networks())))
    assert main(["bench", "table", str(root / "bench-run"), "--to", str(root / "bench-run")]) == 0
    clusters: dict[str, list[str]] = {}
    for sample in bench.samples:
        clusters.setdefault(sample.cluster, []).append(sample.id)
    assert len(clusters) == 2
    for name, ids in zip(("one", "two"), clusters.values(), strict=True):
        record = {"identity": name, "trained_on": ids, "source": {"name": bench.name, "digest": bench.digest}}
        write_json(root / "models" / name / DONE, record)
    return root


@pytest.fixture
def case(made: Path, tmp_path: Path) -> Path:
    for name in ("catalogue", "run", "bench", "bench-run", "models"):
        shutil.copytree(made / name, tmp_path / name)
    return tmp_path


def samples_by_patient(root: Path) -> tuple[set[str], set[str]]:
    """Return the samples that show the patient, and the other ones."""
    with JournalReader.open(root / "run") as reader:
        tasks = {row.id[:12]: reader.image(row.task.image_id).group for row in reader.tasks()}
    gone: set[str] = set()
    stay: set[str] = set()
    for sample in Benchmark.load(root / "bench").samples:
        (gone if tasks[sample.id.partition("-")[0]] == GONE else stay).add(sample.id)
    assert gone
    assert stay
    return gone, stay


def command_for(root: Path) -> list[str]:
    folders = [str(root / name) for name in ("catalogue", "run", "bench", "bench-run", "models")]
    return ["run", "withdraw", *folders, "--group", GONE]


def assert_gone(root: Path, gone: set[str], stay: set[str]) -> None:
    left = [path for name in ("bench", "bench-run") for path in (root / name).rglob("*") if path.is_file()]
    for path in left:
        data = path.read_bytes()
        assert not any(name in path.name or name.encode() in data for name in gone), path
    assert {sample.id for sample in Benchmark.load(root / "bench").samples} == stay
    with BenchRun.open(root / "bench-run") as run:
        assert set(run.samples) == stay
        assert {output.sample_id for arm in run.arms for output in run.outputs(arm)} == stay
        assert verify(run.reader).problems == ()
    assert not (root / "bench-run" / "leaderboard.html").exists()


def test_samples_outputs_and_pages_are_removed_and_models_are_named(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone, stay = samples_by_patient(case)
    assert main([*command_for(case), "--dry-run", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert {sample.id for sample in Benchmark.load(case / "bench").samples} == gone | stay
    assert main([*command_for(case), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["folders"] == planned["folders"]
    by_name = {Path(one["folder"]).name: one for one in printed["folders"]}
    assert set(by_name["bench"]["samples"]) == gone
    assert by_name["bench-run"]["tasks"] == 5 * len(gone)  # four baselines and one editor
    (model,) = by_name["models"]["models"]
    trained = json.loads((Path(model) / DONE).read_text())["trained_on"]
    assert set(trained) == gone
    assert_gone(case, gone, stay)
    # The run resumes with the rest: nothing is generated, and the table is written again.
    editor = Brightener()
    wanted = ArmRequest(own={editor.name: editor})
    bench = Benchmark.load(case / "bench")
    again = asyncio.run(generate(bench, case / "bench-run", wanted, Terms(wanted.models)))
    assert again.made == 0
    run = str(case / "bench-run")
    assert main(["bench", "table", run, "--bench", str(case / "bench"), "--to", run]) == 0
    page = (case / "bench-run" / "leaderboard.html").read_text(encoding="utf-8")
    assert not any(name in page for name in gone)


@pytest.mark.parametrize("after", ["bench-run", "images"])
def test_the_same_command_finishes_after_a_kill(after: str, case: Path) -> None:
    gone, stay = samples_by_patient(case)
    pid = os.fork()
    if pid == 0:
        import plantain.cli.run.consent as command

        if after == "bench-run":
            command.withdraw_from_benchmark = lambda found: os._exit(9)
        else:
            native_format.orjson.dumps = lambda *_, **__: os._exit(9)  # type: ignore[assignment]
            command.withdraw_from_run = lambda *_: None
        main(command_for(case))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert main(command_for(case)) == 0
    assert_gone(case, gone, stay)


def test_benchmark_without_its_build_has_its_own_group_names(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Benchmark.load(case / "bench").samples[0].cluster
    assert main(["run", "withdraw", str(case / "bench"), "--group", cluster]) == 0
    assert "removed" in capsys.readouterr().out
    assert cluster not in {sample.cluster for sample in Benchmark.load(case / "bench").samples}
    sample = Benchmark.load(case / "bench").samples[0].id
    assert main(["run", "withdraw", str(case / "bench"), "--image", sample]) == 0
    assert sample not in {one.id for one in Benchmark.load(case / "bench").samples}
    capsys.readouterr()
    assert main(["run", "withdraw", str(case / "bench"), "--group", "patient:9"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
