"""LoRA of flow-matching editors on tiny pipelines: learned, saved, and loaded by plain diffusers.

Random weights cannot draw: here the loss falls to about that of drawing nothing. That eight edits are learned by a base
that can draw is `benchmarks/overfit.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.methods import FLUX_DEV
from plantain.models.diffusers.pipelines.runner import Runner, runner_for
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.tiny.saving import save_tiny
from plantain.records import InputError
from plantain.roles.options import ProviderOptions
from plantain.train.base import open_base
from plantain.train.flow.conditions import FlowEncoder, encode_flow_pairs
from plantain.train.flow.matching import FlowMatching, flow_fine_tune, flow_fixed_loss
from plantain.train.flow.methods import FLOW_METHODS
from plantain.train.learners import learner_for
from plantain.train.loop.training import Schedule
from plantain.train.study_plan import StudyPlan
from plantain.train.weights import digest, save_lora
from train.moles import pairs

SIDE = 64


@pytest.fixture(scope="module")
def loading(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("flow")

    def of(method: str):
        if not (root / method).exists():
            save_tiny(method, root / method)
        options = ProviderOptions(device="cpu", side=SIDE, accept_licence=(FLUX_DEV,))
        return plan_editor(f"diffusers/{root / method}", options).loading

    return of


def edited(runner: Runner) -> np.ndarray:
    steering = Steering.of({"steps": 2})
    (drawn,) = runner.edit([pairs(1)[0].before], [Job(b"", "remove the mole", 5, side=SIDE)], steering)
    assert drawn.pixels is not None
    return drawn.pixels


@pytest.mark.slow
@pytest.mark.parametrize("method", FLOW_METHODS)
def test_adapters_on_eight_pairs_lower_the_loss_are_saved_and_loaded(
    method: str, loading, tmp_path: Path
) -> None:
    runner = runner_for(loading(method), "cpu")
    encoded = encode_flow_pairs(FlowEncoder(runner, SIDE), pairs(8))
    before = flow_fixed_loss(runner, encoded, draws=2)
    untrained = edited(runner)
    schedule = Schedule(24, 4e-2, batch=4, seed=1)
    flow_fine_tune(runner, encoded, schedule, tmp_path / "work", base="tiny", rank=4)
    assert flow_fixed_loss(runner, encoded, draws=2) < 0.9 * before
    trained = edited(runner)
    assert not np.array_equal(trained, untrained)
    save_lora(runner.pipe, tmp_path / "lora")
    fresh = runner_for(loading(method), "cpu")
    fresh.pipe.load_lora_weights(tmp_path / "lora")  # diffusers' own way
    assert np.array_equal(edited(fresh), trained)
    fresh.pipe.unload_lora_weights()
    assert np.array_equal(edited(fresh), untrained)


def adapters(runner: Runner) -> str:
    weights = runner.pipe.transformer.named_parameters()
    return digest({name: weight for name, weight in weights if "lora" in name})


def test_a_stop_a_batch_and_checkpointing_change_no_weight(loading, tmp_path: Path) -> None:
    ends = []
    for name, checkpointing in (("whole", False), ("stopped", False), ("recomputed", True)):
        runner = runner_for(loading("flux-kontext"), "cpu")
        encoded = encode_flow_pairs(FlowEncoder(runner, SIDE), pairs(3))
        done: list[int] = []

        def train(stop: int) -> None:
            flow_fine_tune(
                runner,  # noqa: B023
                encoded,  # noqa: B023
                Schedule(4, 1e-2, batch=2),
                tmp_path / name,  # noqa: B023
                base="tiny",
                rank=2,
                checkpointing=checkpointing,  # noqa: B023
                on_step=lambda step, noted: done.append(step),  # noqa: B023
                stop=lambda: len(done) == stop,  # noqa: B023
            )

        train(2 if name == "stopped" else -1)
        if name == "stopped":
            runner = runner_for(loading("flux-kontext"), "cpu")
            train(-1)
        assert done == [1, 2, 3, 4]
        ends.append(adapters(runner))
    assert ends[0] == ends[1] == ends[2]


def test_the_loss_is_that_of_the_examples(loading) -> None:
    """The peer: the sum written out for a transformer that says nothing, in which only noise and target are left."""
    runner = runner_for(loading("flux-kontext"), "cpu")
    encoded = encode_flow_pairs(FlowEncoder(runner, SIDE), pairs(1))
    row = encoded.rows([0], torch.device("cpu"))
    seen: dict[str, torch.Tensor] = {}

    class Silent(torch.nn.Module):
        def forward(self, hidden_states, timestep, **said):
            seen.update(hidden_states=hidden_states, timestep=timestep)
            return (torch.zeros_like(hidden_states),)

    matching = FlowMatching(runner)
    matching.transformer = Silent()
    error = matching.error(encoded, 0, 0, "step", 0)
    target = row["target"].flatten(2).transpose(1, 2)
    noisy, reference = seen["hidden_states"].chunk(2, dim=1)
    assert torch.equal(reference, row["source"].flatten(2).transpose(1, 2))
    sigma = seen["timestep"]
    noise = (noisy - (1 - sigma) * target) / sigma
    assert torch.isclose(error, (noise - target).pow(2).mean(), rtol=1e-4)
    assert float(sigma) in matching.sigmas.tolist()


def test_what_cannot_be_trained_is_refused(loading, tmp_path: Path) -> None:
    qwen = open_base(
        f"diffusers/{loading('qwen-image-edit').folder}",
        ProviderOptions(device="cpu", step_cache=0.1, compile=True, bits=8),
        adapters=True,
    )
    assert qwen.loading is not None
    assert qwen.loading.running.settings == {
        "bits": 8
    }  # nothing that leaves blocks out is put on what learns
    with pytest.raises(InputError, match="--bf16: a qwen-image-edit trains in its own precision"):
        learner_for(qwen, StudyPlan(lora_rank=2, bf16=True))
    folder = Path(loading("flux-kontext").folder)
    options = ProviderOptions(device="cpu", accept_licence=(FLUX_DEV,))
    with pytest.raises(InputError, match="only InstructPix2Pix and what"):
        open_base(f"diffusers/{folder}", options)
    base = open_base(f"diffusers/{folder}", options, adapters=True)
    with pytest.raises(InputError, match="give --lora RANK"):
        learner_for(base, StudyPlan(side=SIDE))
    for wrong, said in (({"lora_rank": 0}, "--lora"), ({"weighting": "sideways"}, "--weighting sideways")):
        with pytest.raises(InputError, match=said):
            StudyPlan(**wrong).check()
    with pytest.raises(InputError, match="--weighting sideways"):
        FlowMatching(runner_for(loading("flux-kontext"), "cpu"), "sideways")
