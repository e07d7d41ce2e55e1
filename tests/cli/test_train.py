"""Training from the command line: a benchmark or a release in, editors and a table out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")
pytest.importorskip("diffusers", reason="needs the torch extra")

from bench.small_bench import small_bench
from fakes.commands import json_of, plantain, printed, refused
from fakes.full_disk import full_disk
from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix
from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.pipeline.run import run_build
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions

pytestmark = pytest.mark.usefixtures("devices_here")

SMALL = ("seeds=1", "steps_per_sample=2", "side=64", "per_task=6")


def sets(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    tiny_instruct_pix2pix(seed=0).save_pretrained(folder)
    return f"diffusers/{folder}"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text('[providers.diffusers]\ndevice = "cpu"\nsteps = 2\nside = 64\n', encoding="utf-8")
    return path


@pytest.mark.slow
def test_full_disk_gives_one_line_and_training_resumes(tmp_path: Path, model: str, settings: Path) -> None:
    small_bench(tmp_path / "bench", 4)
    args = ["train", "finetune", tmp_path / "bench", "--model", model, "--to", tmp_path / "out", "--json"]
    args += [*sets("sizes=1", "seeds=1", "steps_per_sample=1", "side=64", "per_task=3", "judge=none")]
    args += ["--settings", settings]
    for size, message in ((3_000, "the editor n1-s0"), (100_000, "the editor n1-s0")):
        with full_disk(size):
            done = plantain(*args)
        lines = done.stderr.splitlines()
        assert done.returncode == 2
        assert message in lines[-1] and "make room and run the same command again" in lines[-1]
        assert not any("Traceback" in line for line in lines)
    assert not list((tmp_path / "out").rglob("training.json"))
    printed(*args)
    assert len(list((tmp_path / "out").rglob("training.json"))) == 1


@pytest.mark.slow
def test_models_are_trained_and_scored_on_a_benchmark(tmp_path: Path, model: str, settings: Path) -> None:
    small_bench(tmp_path / "bench", 4)
    args = ["train", "finetune", tmp_path / "bench", "--model", model, "--to", tmp_path / "out"]
    args += [*sets(*SMALL, "sizes=1"), "--settings", settings]
    data = json_of(*args)
    assert {row["shots"] for row in data["rows"]} == {0, 1}
    assert {row["metric"] for row in data["rows"]} >= {"CP", "EA"}
    assert {row["task"] for row in data["rows"]} == {"", "Task 0"}
    assert all(row["estimate"]["n"] for row in data["rows"] if row["metric"] == "CP")
    page = Path(data["report"]).read_text(encoding="utf-8")
    assert "Table 7 (a)" in page
    assert "<script src" not in page
    before = sorted((tmp_path / "out").rglob("*"))
    printed(*args)  # nothing is left to do
    assert sorted((tmp_path / "out").rglob("*")) == before


def test_a_plan_trains_nothing(tmp_path: Path, model: str) -> None:
    small_bench(tmp_path / "bench", 6)
    args = ["train", "finetune", tmp_path / "bench", "--model", model, "--to", tmp_path / "out"]
    plan = printed(*args, *sets(*SMALL, "sizes=0,1,2"), "--dry-run")
    assert "2 models, 6 steps in total; shots: 0, 1, 2" in plan
    assert "--task Task 9: no such task; there are Task 0" in refused(
        *args, *sets(*SMALL, "sizes=1"), "--task", "Task 9", "--dry-run"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_preferences_of_a_release_are_trained(tmp_path: Path, model: str, settings: Path) -> None:
    run, release = tmp_path / "run", tmp_path / "release"
    recipe = quick_recipe(quick_catalogue(tmp_path / "catalogue", images=4))
    asyncio.run(run_build(recipe, run, method=quick_method(CallLog(None))))
    export_run(run, release, ExportOptions(("parquet", "preference"), licences=("CC-BY-4.0",)))
    args = ["train", "dpo", release, "--model", model, "--settings", settings, "--to", tmp_path / "dpo"]
    args += sets("side=64", "steps=2", "supervised_steps=1", "every=1", "lora_rank=2")
    with full_disk(3_000):
        done = plantain(*args)
    assert done.returncode == 2 and "the editor supervised" in done.stderr.splitlines()[-1]
    data = json_of(*args)
    assert data["step"] == 2 or "over the bound" in data["stopped"]
    assert "Diffusion-DPO" in Path(data["model"], "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["finetune", "nowhere", "--model", "diffusers/x/y"], "nowhere"),
        (["finetune", "{bench}", "--model", "gemini/x", *sets("sizes=1")], "diffusers/FOLDER"),
        (
            ["finetune", "{bench}", "--model", "diffusers/x/y", *sets("sizes=a")],
            "--set sizes: input should be",
        ),
        (["finetune", "{bench}", "--model", "diffusers/x/y", *sets("sizes=16")], "too few"),
        (["finetune", "{bench}", "--model", "diffusers/x/y", *sets("side=100")], "--set side"),
        (["finetune", "{bench}", "--model", "diffusers/x/y", *sets("lora=8")], "did you mean 'lora_rank'"),
        (["finetune", "{bench}", "--model", "diffusers/x/y", *sets("seed")], "write NAME=VALUE"),
        (["finetune", "{release}", "--model", "diffusers/x/y"], "release: no benchmark"),
        (["dpo", "{bench}", "--model", "diffusers/x/y", "--originals", "nowhere"], "nowhere"),
        (["dpo", "{bench}", "--model", "diffusers/x/y", *sets("bound=0.5")], "--set bound"),
        (["tune"], "did you mean 'finetune'"),
    ],
)
def test_wrong_arguments_give_one_line_and_write_nothing(
    tmp_path: Path, args: list[str], message: str
) -> None:
    small_bench(tmp_path / "bench", 4)
    (tmp_path / "release" / "data").mkdir(parents=True)
    places = {"bench": tmp_path / "bench", "release": tmp_path / "release"}
    arguments = [arg.format(**places) for arg in args]
    assert message in refused("train", *arguments, "--to", tmp_path / "out")
    assert not (tmp_path / "out").exists()
