"""Every class of open editor, tiny, from a saved folder through `plantain bench generate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import orjson
import pytest

pytest.importorskip("diffusers")

from bench.small_bench import HEIGHT, WIDTH, small_bench
from fakes.tiny.saving import save_tiny
from plantain.bench.generate.runfile import BenchRun
from plantain.cli import main
from plantain.pixels.decode import decode

WORKER = Path(__file__).parents[2] / "fakes" / "process_worker.py"

SETTINGS = """
[limits]
concurrency = 4
[providers.diffusers]
device = "cpu"
side = 64
steps = 2
batch_size = 2
accept_licence = ["flux-1-dev-non-commercial-license"]
{more}
[providers.process.workers.mine]
command = [{python}, "-I", {worker}]
"""


pytestmark = pytest.mark.usefixtures("devices_here")


def generate(folder: Path, name: str, *editors: str, more: str = "", extra: tuple[str, ...] = ()) -> BenchRun:
    settings = folder / f"{name}.toml"
    text = SETTINGS.format(more=more, python=json.dumps(sys.executable), worker=json.dumps(str(WORKER)))
    settings.write_text(text)
    options = [word for editor in editors for word in ("--editor", editor)]
    run = folder / name
    arguments = ["bench", "generate", str(folder / "bench"), "--run", str(run), "--settings", str(settings)]
    assert main([*arguments, *options, *extra]) == 0
    return BenchRun.open(run)


@pytest.mark.slow
def test_every_class_makes_its_outputs(tmp_path: Path) -> None:
    small_bench(tmp_path / "bench", samples=2)
    folders = {
        "pix2pix": "instruct-pix2pix",
        "base": "ledits",
        "sdxl": "sdxl-instruct-pix2pix",
        "fill": "icedit",
        "kontext": "flux-kontext",
        "klein": "flux2-klein",
        "qwen0": "qwen-image-edit",
        "qwen1": "qwen-image-edit-plus",
    }
    for name, method in folders.items():
        save_tiny(method, tmp_path / name)
    arms = {
        f"diffusers/{tmp_path}/pix2pix": "instruct-pix2pix",
        f"diffusers/medebench-paint-by-inpaint@{tmp_path}/pix2pix": "instruct-pix2pix",
        f"diffusers/medebench-instruct-diffusion@{tmp_path}/pix2pix": "instruct-diffusion",
        f"diffusers/{tmp_path}/sdxl": "sdxl-instruct-pix2pix",
        f"diffusers/{tmp_path}/fill": "icedit",
        f"diffusers/{tmp_path}/kontext": "flux-kontext",
        f"diffusers/{tmp_path}/klein": "flux2-klein",
        f"diffusers/{tmp_path}/qwen0": "qwen-image-edit",
        f"diffusers/{tmp_path}/qwen1": "qwen-image-edit-plus",
        f"diffusers/ledits-pp@{tmp_path}/base": "ledits",
        "process/mine": None,
    }
    with generate(tmp_path, "run", *arms) as run:
        for label, method in arms.items():
            outputs = list(run.outputs(label))
            assert [output.sample_id for output in outputs] == ["1", "2"]
            for output in outputs:
                assert decode(run.read(output)).shape == (HEIGHT, WIDTH, 3)
                (call,) = run.reader.calls(output.task_id)
                assert orjson.loads(call.raw).get("method") == method
    imagic = f"diffusers/medebench-imagic@{tmp_path}/base"
    sweep = ("--sweep", "alpha=1.3,1.35")
    with generate(tmp_path, "imagic", imagic, more="text_steps = 2\nmodel_steps = 2", extra=sweep) as run:
        first, second, *_ = run.outputs(imagic)
        assert (dict(first.parameters), dict(second.parameters)) == ({"alpha": 1.3}, {"alpha": 1.35})
        assert run.read(first) != run.read(second)
