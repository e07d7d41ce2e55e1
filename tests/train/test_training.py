"""Training on small images with tiny random models: the machinery, not the quality."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from plantain.models.diffusers.methods import METHODS
from plantain.records import InputError
from plantain.train.base import InstructionPipeline
from plantain.train.denoising import Denoising, Encoded, Encoder, draw_by_id
from plantain.train.editor import save_lora
from plantain.train.plans import PreferencePlan, TrainingProgress
from plantain.train.preference import PreferenceErrors, compare_with_reference, prefer, preference_loss
from plantain.train.supervised import fine_tune
from plantain.train.training import Schedule, batch_of
from plantain.train.training import run as train_weights
from train.moles import INSTRUCTION, encoded_pairs, encoded_preferences, fresh, pairs, preferences

QUIET = TrainingProgress()


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
def test_twenty_steps_cut_the_loss_on_four_pairs(rank: int | None, rate: float, least: float) -> None:
    pipe = fresh()
    data = encoded_pairs(pipe, pairs(4))
    before = mean_error(pipe, data)
    schedule = Schedule(20, rate, batch=4, seed=1)
    trained = fine_tune(pipe, data, schedule, QUIET, lora_rank=rank)
    assert trained.step == len(trained.log) == 20
    assert mean_error(pipe, data) < (1 - least) * before


def test_adapters_saved_and_loaded_give_the_identical_image(tmp_path: Path) -> None:
    pipe = fresh()
    data = encoded_pairs(pipe, pairs(2))
    fine_tune(pipe, data, Schedule(5, 1e-2, batch=2), QUIET, lora_rank=4)
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
def supervised() -> dict[str, Tensor]:
    """Weights after supervised steps: without them preferences are not learned."""
    pipe = fresh()
    data = encoded_pairs(pipe, pairs(8))
    fine_tune(pipe, data, Schedule(50, 2e-3, batch=4), QUIET)
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


def test_preference_training_helps_monitored_pairs_within_its_bound(supervised: dict[str, Tensor]) -> None:
    pipe = after_supervision(supervised)
    learn = encoded_preferences(pipe, preferences(6))
    watch = encoded_preferences(pipe, preferences(6, first=20))
    plan = PreferencePlan(steps=20, learning_rate=4e-4, batch=4, every=20, lora_rank=4, beta=1000.0)
    assert prefer(pipe, learn, watch, plan, QUIET).step == 20
    found = compare_with_reference(pipe, watch)
    assert found.accuracy > 0.6  # nothing learned: 0, as no gap differs from the reference's
    assert found.winner_ratio <= 1.05


def test_the_bound_ends_a_training_that_spoils_the_winner(supervised: dict[str, Tensor]) -> None:
    pipe = after_supervision(supervised)
    data = encoded_preferences(pipe, preferences(2))
    plan = PreferencePlan(steps=12, learning_rate=3e-2, batch=2, every=3, lora_rank=4, bound=1.05)
    trained = prefer(pipe, data, data, plan, QUIET)
    assert "over the bound 1.05" in trained.stopped
    assert trained.step < 12
    assert compare_with_reference(pipe, data).winner_ratio <= 1.05  # the weights before it went wrong
    assert len(trained.log) == trained.step


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


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda w: w.sum() * float("inf"), "the loss is inf"),
        (lambda w: (w - w).abs().sqrt().sum(), "the gradient is nan"),  # a loss of 0, whose slope is 0 / 0
    ],
    ids=["loss", "gradient"],
)
def test_non_finite_loss_or_gradient_stops_before_the_update(bad, message: str) -> None:  # type: ignore[no-untyped-def]
    own = {"w": nn.Parameter(torch.ones(4))}

    def loss_of(numbers: list[int], step: int) -> Tensor:
        return bad(own["w"]) if step == 3 else own["w"].mean()

    with pytest.raises(InputError, match=f"training step 4: {message}"):
        train_weights(own, loss_of, [(8, 8)], Schedule(6, 0.1), QUIET, lambda: False)
    assert torch.isfinite(own["w"]).all()
