"""A training on a disk that fills up, and one whose numbers leave all bounds: one line each, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from plantain.records import InputError
from plantain.train import checkpoints
from plantain.train.plans import TrainingProgress
from plantain.train.training import Schedule, Session, run

SCHEDULE = Schedule(6, 0.1, checkpoint_every=2)
ONE = [(8, 8)]  # the canvas of one example


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=9m", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def weights(value: float = 1.0) -> dict[str, nn.Parameter]:
    return {"w": nn.Parameter(torch.full((400_000,), value))}  # 1.6 MB, and 3.2 MB of the optimizer's


def descend(own: dict[str, nn.Parameter], folder: Path) -> dict[str, nn.Parameter]:
    def loss_of(numbers: list[int], step: int) -> Tensor:
        return ((own["w"] - step) ** 2).mean()

    assert run(own, loss_of, ONE, SCHEDULE, Session(folder, TrainingProgress()), "one training").step == 6
    return own


def test_a_full_disk_leaves_the_last_checkpoint_and_room_lets_it_go_on(
    small_disk: Path, tmp_path: Path
) -> None:
    # A checkpoint takes 4.8 MB, and the next is written before it is removed: two do not fit.
    with pytest.raises(InputError, match="checkpoint of step 4 cannot be written") as caught:
        descend(weights(), small_disk / "work")
    assert "\n" not in str(caught.value)
    assert "make room and run the same command again" in str(caught.value)
    assert sorted(path.name for path in (small_disk / "work").iterdir()) == [checkpoints.NAME]
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    resumed = descend(weights(), small_disk / "work")
    undisturbed = descend(weights(), tmp_path / "work")
    assert torch.equal(resumed["w"], undisturbed["w"])


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (lambda w: w.sum() * float("inf"), "the loss is inf"),
        (lambda w: (w - w).abs().sqrt().sum(), "the gradient is nan"),  # a loss of 0, whose slope is 0 / 0
    ],
    ids=["loss", "gradient"],
)
def test_numbers_out_of_bounds_stop_before_they_are_learned(tmp_path: Path, bad, said: str) -> None:  # type: ignore[no-untyped-def]
    own = weights()

    def loss_of(numbers: list[int], step: int) -> Tensor:
        return bad(own["w"]) if step == 3 else own["w"].mean()

    with pytest.raises(InputError, match=f"training step 4: {said}"):
        run(own, loss_of, ONE, SCHEDULE, Session(tmp_path, TrainingProgress()), "one training")
    assert torch.isfinite(own["w"]).all()
    kept = weights(0.0)
    optimizer = torch.optim.AdamW(kept.values(), lr=0.1)
    found = checkpoints.load(tmp_path, kept, optimizer, "one training")
    assert found is not None
    assert found.step == 2
