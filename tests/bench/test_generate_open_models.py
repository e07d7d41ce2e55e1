"""Generating with an open model: a tiny pipeline of random weights, loaded as users load theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_bench import HEIGHT, WIDTH, small_bench

from plantain.bench.runfile import BenchRun
from plantain.cli import main
from plantain.pixels.decode import decode

pytest.importorskip("diffusers")


@pytest.mark.slow
def test_guidance_grid_of_an_open_model(tmp_path: Path) -> None:
    from fakes.tiny_pipelines import tiny_instruct_pix2pix

    tiny_instruct_pix2pix().save_pretrained(tmp_path / "weights")
    small_bench(tmp_path / "bench", 2)
    settings = tmp_path / "settings.toml"
    settings.write_text('[providers.diffusers]\nsteps = 2\nside = 64\ndevice = "cpu"\n')
    arguments = ["bench", "generate", str(tmp_path / "bench"), "--run", str(tmp_path / "run"), "--json"]
    arguments += ["--editor", f"diffusers/{tmp_path / 'weights'}=Tiny", "--settings", str(settings)]
    arguments += ["--sweep", "image_guidance=1.2,1.8", "--sweep", "guidance=2,9"]
    assert main(arguments) == 0
    with BenchRun.open(tmp_path / "run") as bench:
        first = {(one.sample_id, one.k): one.edited for one in bench.outputs("Tiny")}
        for output in bench.outputs("Tiny"):
            assert decode(bench.read(output)).shape == (HEIGHT, WIDTH, 3)
    assert len(set(first.values())) == 8  # two samples, four points, each another picture
