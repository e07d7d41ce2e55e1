"""Learning rates and averaged weights, against diffusers' own; and both over a training that is stopped and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel
from torch import Tensor, nn

from plantain.records import InputError
from plantain.train.loop import checkpoints
from plantain.train.loop.averages import Averages
from plantain.train.loop.rates import RATES, rate_factor
from plantain.train.loop.training import Schedule, Trained, run
from plantain.train.study_plan import StudyPlan
from plantain.train.weights import digest


@pytest.mark.parametrize("kind", RATES)
@pytest.mark.parametrize("warmup", [0, 4])
def test_rates_are_those_of_diffusers(kind: str, warmup: int) -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=2.0)
    named = "constant_with_warmup" if kind == "constant" and warmup else kind
    peer = get_scheduler(named, optimizer, num_warmup_steps=warmup, num_training_steps=20)
    for step in range(20):
        assert 2.0 * rate_factor(kind, step, 20, warmup) == pytest.approx(peer.get_last_lr()[0])
        optimizer.step()
        peer.step()


def test_averages_are_those_of_diffusers() -> None:
    torch.manual_seed(3)
    weights = {"w": nn.Parameter(torch.randn(5))}
    ours, peer = Averages(weights, 0.9), EMAModel(weights.values(), decay=0.9)
    for _ in range(30):
        with torch.no_grad():
            weights["w"] += torch.randn(5)
        ours.add(weights)
        peer.step(weights.values())
        assert torch.allclose(ours.values["w"], peer.shadow_params[0])
    ours.put_into(weights)
    assert torch.equal(weights["w"], ours.values["w"])


def trained(folder: Path, schedule: Schedule, stop_at: int = -1) -> tuple[Trained, str]:
    own, done = {"w": nn.Parameter(torch.ones(4))}, list[int]()

    def loss_of(step: int) -> tuple[Tensor, dict[str, float]]:
        loss = ((own["w"] - torch.tensor([1.0, 2.0, 3.0, step])) ** 2).mean()
        return loss, {"loss": float(loss.detach())}

    told = run(
        own,
        loss_of,
        schedule,
        folder,
        "one",
        on_step=lambda step, noted: done.append(step),
        stop=lambda: len(done) == stop_at,
    )
    return told, digest(own)


def test_a_stopped_training_with_rates_and_averages_ends_with_the_same_weights(tmp_path: Path) -> None:
    schedule = Schedule(10, 0.3, checkpoint_every=4, rates="cosine", warmup=2, ema=0.8)
    _, whole = trained(tmp_path / "whole", schedule)
    assert trained(tmp_path / "stopped", schedule, 6)[0].stopped == "interrupted"
    told, resumed = trained(tmp_path / "stopped", schedule)
    assert (told.step, resumed) == (10, whole)
    assert trained(tmp_path / "stopped", schedule)[1] == whole  # once more, when all is done
    assert trained(tmp_path / "raw", Schedule(10, 0.3, rates="cosine", warmup=2))[1] != whole


def test_a_training_without_checkpoints_writes_one_only_when_it_is_stopped(
    tmp_path: Path,
) -> None:
    schedule = Schedule(6, 0.3, checkpoint_every=0)
    _, whole = trained(tmp_path / "whole", schedule)
    assert not (tmp_path / "whole").exists()
    trained(tmp_path / "stopped", schedule, 3)
    assert (tmp_path / "stopped" / checkpoints.NAME).is_dir()
    assert trained(tmp_path / "stopped", schedule)[1] == whole


@pytest.mark.parametrize(
    "wrong", [{"rates": "sideways"}, {"warmup": -1}, {"ema": 1.0}, {"checkpoint_gb": -1}]
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        StudyPlan(**wrong).check()  # type: ignore[arg-type]
