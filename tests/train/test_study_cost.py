"""What a study takes, from the headers of weights: against torch's own count, and the paper's study by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plantain.models.diffusers.tiny.stable_diffusion import tiny_instruct_pix2pix
from plantain.train.study_cost import study_cost
from plantain.train.study_plan import StudyCell, StudyPlan
from plantain.train.weights import make_trainable


def cells(plan: StudyPlan, tasks: int) -> list[StudyCell]:
    return [
        StudyCell(str(task), size, seed, ())
        for task in range(tasks)
        for size in plan.sizes
        if size
        for seed in range(plan.seeds)
    ]


def of_weights(folder: Path, count: int) -> Path:
    """A base of so many weights that has their header only."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}).encode()
    (folder / "unet").mkdir(parents=True)
    (folder / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header
    )
    return folder


@pytest.mark.parametrize("rank", [None, 3])
def test_weights_are_counted_as_torch_does(rank: int | None, tmp_path: Path) -> None:
    pipe = tiny_instruct_pix2pix()
    pipe.unet.save_pretrained(tmp_path / "unet")
    plan = StudyPlan(lora_rank=rank)
    learned = sum(weight.numel() for weight in make_trainable(pipe, rank, 0).values())
    assert study_cost(plan, cells(plan, 1), tmp_path).weights == learned


def test_the_papers_study_keeps_within_what_checkpoints_may_write(tmp_path: Path) -> None:
    """Six tasks, 4, 8 and 16 samples, three seeds; a UNet of 860 million weights, so a checkpoint of 10.3 GB.

    Every 100 steps: 18 x ((1 + 2) + (1 + 4) + (1 + 8)) = 306 checkpoints, 3.2 TB.
    """
    base = of_weights(tmp_path, 860_000_000)
    free = StudyPlan(checkpoint_gb=1e6)
    cost = study_cost(free, cells(free, 6), base)
    assert (cost.models, cost.steps) == (54, 18 * 50 * (4 + 8 + 16))
    assert cost.checkpoint_gb == pytest.approx(10.32)
    assert cost.written_gb == pytest.approx(306 * 10.32)
    plan = StudyPlan()
    cost = study_cost(plan, cells(plan, 6), base)
    assert cost.written_gb <= plan.checkpoint_gb
    assert cost.checkpoint_every == 0  # two for each of 54 trainings would be 1.1 TB
    assert cost.kept_gb == pytest.approx(54 * 3.44)
    assert cost.peak_gb == pytest.approx(cost.kept_gb)
    wider = StudyPlan(checkpoint_gb=2000)  # every 200 steps: 18 x (2 + 3 + 5) x 10.32 GB = 1.86 TB
    assert study_cost(wider, cells(wider, 6), base).checkpoint_every == 200
    assert 0 < cost.hours["H100"] < cost.hours["A100"] < cost.hours["16 processor cores"]


def test_unknown_weights_are_said_to_be_unknown(tmp_path: Path) -> None:
    plan = StudyPlan()
    cost = study_cost(plan, cells(plan, 1), tmp_path)
    assert (cost.weights, cost.hours, cost.checkpoint_every) == (0, {}, 100)
