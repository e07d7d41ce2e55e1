"""A training on a disk that fills up, and one whose numbers leave all bounds: one line each, and nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from plantain.records import InputError
from plantain.train import training
from plantain.train.plans import TrainingProgress
from plantain.train.training import Schedule, Session, run

SCHEDULE = Schedule(6, 0.1, checkpoint_every=2)
ONE = [(8, 8)]  # the canvas of one example


def weights(value: float = 1.0) -> dict[str, nn.Parameter]:
    return {"w": nn.Parameter(torch.full((400_000,), value))}  # 1.6 MB, and 3.2 MB of the optimizer's


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
    found = training.load_checkpoint(tmp_path, kept, optimizer, "one training")
    assert found is not None
    assert found.step == 2
