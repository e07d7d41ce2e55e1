"""Training on small images with tiny random models: the machinery, not the quality."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from plantain.models.diffusers.methods import METHODS
from plantain.records import InputError
from plantain.train import training
from plantain.train.base import InstructionPipeline
from plantain.train.denoising import Denoising, Encoded, Encoder, draw_by_id
from plantain.train.editor import save_lora
from plantain.train.plans import PreferencePlan, TrainingProgress
from plantain.train.preference import (
    PreferenceErrors,
    compare_with_reference,
    prefer,
    preference_loss,
)
from plantain.train.supervised import fine_tune
from plantain.train.training import Checkpoint, Schedule, Session, batch_of
from plantain.train.training import run as train_weights
from train.moles import INSTRUCTION, Counting, encoded_pairs, encoded_preferences, fresh, pairs, preferences


def session(folder: Path, stop: Callable[[], bool] = lambda: False) -> Session:
    return Session(folder, TrainingProgress(), stop)


def learned(pipe: InstructionPipeline) -> dict[str, Tensor]:
    return {name: weight for name, weight in pipe.unet.named_parameters() if weight.requires_grad}


def digest(weights: Mapping[str, Tensor]) -> str:
    total = hashlib.sha256()
    for name in sorted(weights):
        total.update(name.encode() + weights[name].detach().numpy().tobytes())
    return total.hexdigest()


def mean_error(pipe: InstructionPipeline, data: Encoded) -> float:
    """With the same noise every time."""
    denoising, errors = Denoising(pipe), []
    rows = data.rows(range(len(data)), torch.device("cpu"))
    for number in range(16):
        drawn = draw_by_id(0, "fixed", data.ids, number, tuple(rows["target"].shape[1:]), denoising.timesteps)
        with torch.no_grad():
            errors.append(
                denoising.errors(rows["target"], rows["source"], rows["text"], rows["weight"], drawn)
            )
    return float(torch.cat(errors).mean())


@pytest.mark.parametrize(("rank", "rate", "least"), [(None, 1e-3, 0.4), (8, 1e-2, 0.1)])
def test_twenty_steps_cut_the_loss_on_four_pairs(
    tmp_path: Path, rank: int | None, rate: float, least: float
) -> None:
    pipe = fresh()
    data = encoded_pairs(pipe, pairs(4))
    before = mean_error(pipe, data)
    schedule = Schedule(20, rate, batch=4, seed=1)
    trained = fine_tune(pipe, data, schedule, session(tmp_path), identity="tiny", lora_rank=rank)
    assert trained.step == len(trained.log) == 20
    assert mean_error(pipe, data) < (1 - least) * before


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    schedule = Schedule(8, 1e-3, batch=2, seed=5, checkpoint_every=3)

    def train(folder: Path, stop_at: int | None) -> tuple[str, int]:
        pipe, progress = fresh(), Counting()
        data = encoded_pairs(pipe, pairs(3))
        trained = fine_tune(
            pipe,
            data,
            schedule,
            Session(folder, progress, lambda: progress.steps == stop_at),
            identity="tiny",
        )
        return digest(learned(pipe)), trained.step

    whole, _ = train(tmp_path / "whole", None)
    first, step = train(tmp_path / "halves", 4)
    assert (first != whole, step) == (True, 4)
    assert train(tmp_path / "halves", None) == (whole, 8)
    assert train(tmp_path / "halves", None) == (whole, 8)


def test_a_kill_between_renames_leaves_a_complete_checkpoint(tmp_path: Path) -> None:
    weight = {"w": torch.nn.Parameter(torch.zeros(3))}
    optimizer = torch.optim.AdamW(weight.values())
    training.save_checkpoint(tmp_path, weight, optimizer, Checkpoint(1, "a", ()))
    (tmp_path / training.CHECKPOINT).rename(tmp_path / training.OLD)  # as if killed between the two renames
    found = training.load_checkpoint(tmp_path, weight, optimizer, "a")
    assert found is not None
    assert found.step == 1


def test_adapters_saved_and_loaded_give_the_identical_image(tmp_path: Path) -> None:
    pipe = fresh()
    data = encoded_pairs(pipe, pairs(2))
    fine_tune(pipe, data, Schedule(5, 1e-2, batch=2), session(tmp_path / "t"), identity="tiny", lora_rank=4)
    save_lora(pipe, tmp_path / "lora")

    def edited(model: InstructionPipeline) -> np.ndarray:
        return model(
            INSTRUCTION,
            image=Image.fromarray(pairs(1)[0].before),
            num_inference_steps=2,
            generator=torch.Generator().manual_seed(0),
            output_type="np",
        ).images

    loaded, base = fresh(), fresh()
    loaded.load_lora_weights(tmp_path / "lora")
    assert np.array_equal(edited(pipe), edited(loaded))
    assert not np.array_equal(edited(base), edited(loaded))


@pytest.fixture(scope="module")
def supervised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    """Weights after supervised steps: without them preferences are not learned."""
    pipe, folder = fresh(), tmp_path_factory.mktemp("first")
    data = encoded_pairs(pipe, pairs(8))
    fine_tune(pipe, data, Schedule(50, 2e-3, batch=4), session(folder), identity="tiny")
    return {name: weight.detach().clone() for name, weight in pipe.unet.state_dict().items()}


def after_supervision(weights: dict[str, Tensor]) -> InstructionPipeline:
    pipe = fresh()
    pipe.unet.load_state_dict(weights)
    return pipe


def test_the_loss_is_equation_14_by_hand() -> None:
    # Winner 0.2 to 0.1, loser 0.3 to 0.4: the gap is -0.2, the loss at beta 10 log(1 + exp(-1)) = 0.3132617.
    errors = PreferenceErrors(*(torch.tensor([value]) for value in (0.1, 0.4, 0.2, 0.3)))
    assert float(preference_loss(errors, 10.0)) == pytest.approx(0.3132617)
    same = PreferenceErrors(*(torch.tensor([value]) for value in (0.2, 0.3, 0.2, 0.3)))
    assert float(preference_loss(same, 10.0)) == pytest.approx(0.6931472)  # log 2


def test_preference_training_helps_monitored_pairs_within_its_bound(
    tmp_path: Path, supervised: dict[str, Tensor]
) -> None:
    pipe = after_supervision(supervised)
    learn = encoded_preferences(pipe, preferences(6))
    watch = encoded_preferences(pipe, preferences(6, first=20))
    plan = PreferencePlan(steps=20, learning_rate=4e-4, batch=4, every=20, lora_rank=4, beta=1000.0)
    assert prefer(pipe, learn, watch, plan, session(tmp_path), identity="tiny").step == 20
    found = compare_with_reference(pipe, watch)
    assert found.accuracy > 0.6  # nothing learned: 0, as no gap differs from the reference's
    assert found.winner_ratio <= 1.05


def test_the_bound_ends_a_training_that_spoils_the_winner(
    tmp_path: Path, supervised: dict[str, Tensor]
) -> None:
    pipe = after_supervision(supervised)
    data = encoded_preferences(pipe, preferences(2))
    plan = PreferencePlan(steps=12, learning_rate=3e-2, batch=2, every=3, lora_rank=4, bound=1.05)
    trained = prefer(pipe, data, data, plan, session(tmp_path), identity="tiny")
    assert "over the bound 1.05" in trained.stopped
    assert trained.step < 12
    assert compare_with_reference(pipe, data).winner_ratio <= 1.05  # the weights before it went wrong
    again = prefer(after_supervision(supervised), data, data, plan, session(tmp_path), identity="tiny")
    assert (again.step, again.stopped) == (trained.step, trained.stopped)


def test_every_epoch_sees_each_example_once_in_its_own_order() -> None:
    schedule = Schedule(10, 1e-3, batch=2, seed=3)
    square, wide = (8, 8), (4, 8)
    for canvases, steps in (([square] * 6, 3), ([square, wide, square, wide, square, square, wide], 4)):
        epochs = [
            [batch_of(schedule, steps * epoch + step, canvases) for step in range(steps)]
            for epoch in range(3)
        ]
        assert all(
            sorted(row for batch in epoch for row in batch) == list(range(len(canvases))) for epoch in epochs
        )
        assert len({str(epoch) for epoch in epochs}) > 1
        assert all(len({canvases[row] for row in batch}) == 1 for epoch in epochs for batch in epoch)


@pytest.mark.parametrize("size", [(512, 223), (1024, 30)])
@pytest.mark.parametrize("side", [64, 256])
def test_training_sees_the_canvas_that_an_edit_is_made_on(
    size: tuple[int, int], side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The VAE receives equal pixels in an edit and in training."""
    width, height = size
    rng = np.random.default_rng(3)
    image = rng.integers(60, 255, (height, width, 3)).astype(np.uint8)
    pipe = fresh()
    seen: list[Tensor] = []

    class Enough(Exception):
        pass

    def encode(pixels: Tensor, *args: object, **more: object) -> None:
        seen.append(pixels)
        raise Enough

    monkeypatch.setattr(pipe.vae, "encode", encode)
    with pytest.raises(Enough):
        Encoder(pipe, side).condition(image)
    frame = METHODS["instruct-pix2pix"].frame.frame(width, height, side)
    with pytest.raises(Enough):
        pipe("x", image=Image.fromarray(frame.enter(image)), num_inference_steps=1, output_type="np")
    learned_from, edited_on = seen
    assert learned_from.shape == edited_on.shape
    assert torch.allclose(learned_from, edited_on, atol=1e-6)
    assert (learned_from.amax(dim=(1, 3)) > -0.5).all()  # 60 of 255 is -0.53: no row of padding is black,
    assert (learned_from.amax(dim=(1, 2)) > -0.5).all()  # and no column


SHORT = Schedule(6, 0.1, checkpoint_every=2)
ONE = [(8, 8)]  # the canvas of one example


def weights(value: float = 1.0) -> dict[str, nn.Parameter]:
    return {"w": nn.Parameter(torch.full((400_000,), value))}  # 1.6 MB, and 3.2 MB of the optimizer's


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda w: w.sum() * float("inf"), "the loss is inf"),
        (lambda w: (w - w).abs().sqrt().sum(), "the gradient is nan"),  # a loss of 0, whose slope is 0 / 0
    ],
    ids=["loss", "gradient"],
)
def test_non_finite_loss_or_gradient_stops_before_the_update(tmp_path: Path, bad, message: str) -> None:  # type: ignore[no-untyped-def]
    own = weights()

    def loss_of(numbers: list[int], step: int) -> Tensor:
        return bad(own["w"]) if step == 3 else own["w"].mean()

    with pytest.raises(InputError, match=f"training step 4: {message}"):
        train_weights(own, loss_of, ONE, SHORT, Session(tmp_path, TrainingProgress()), "one training")
    assert torch.isfinite(own["w"]).all()
    kept = weights(0.0)
    optimizer = torch.optim.AdamW(kept.values(), lr=0.1)
    found = training.load_checkpoint(tmp_path, kept, optimizer, "one training")
    assert found is not None
    assert found.step == 2
