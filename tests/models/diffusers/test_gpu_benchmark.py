"""The smallest step of `benchmarks/gpu.py`, on a processor; the larger pipelines are built without their weights."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from plantain.cli import main

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.slow
@pytest.mark.usefixtures("devices_here")
def test_smallest_rung_is_measured_on_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command runs in this process, which has torch."""
    import gpu
    from simulated.ladder import Rung

    def run(command: list[str], **_: object) -> SimpleNamespace:
        assert command[1:3] == ["-m", "plantain"]
        main(command[3:])
        return SimpleNamespace(stderr="")

    monkeypatch.setattr(gpu, "subprocess", SimpleNamespace(run=run))
    (row,) = gpu.measure(Rung("tiny", 64, 1, (1,), 3), tmp_path, "cpu")
    assert (row["pipeline"], row["side"], row["batch"]) == ("tiny", 64, 1)
    assert float(str(row["bare_per_s"])) > 0
    assert float(str(row["plantain_per_s"])) > 0
    drawn = {path.name for path in (tmp_path / "bare-tiny-1").iterdir()}
    assert len(drawn) == 3


@pytest.mark.parametrize(("name", "least", "most"), [("sd15", 0.85e9, 0.88e9), ("sdxl", 2.5e9, 2.6e9)])
def test_larger_rungs_have_the_published_sizes(name: str, least: float, most: float) -> None:
    """Weights of the UNets: 860 million (Stable Diffusion 1.5's model card), 2.6 billion (SDXL's paper, table 1)."""
    from simulated.ladder import networks_of

    with torch.device("meta"):
        unet = networks_of(name)["unet"]
    assert least < sum(weight.numel() for weight in unet.parameters()) < most
