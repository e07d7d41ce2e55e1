"""Learning on small pictures with tiny random models: the machinery, not the quality."""

from __future__ import annotations

import copy
import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.tiny.stable_diffusion import tiny_instruct_pix2pix
from plantain.records import InputError
from plantain.train.encoded import encode
from plantain.train.latents import Encoder
from plantain.train.loop import checkpoints
from plantain.train.loop.training import Schedule, batch_of
from plantain.train.noise import Denoising, draw, dropped
from plantain.train.preference import prefer, standing
from plantain.train.preference_denoising import DenoisingPreference, encode_preferences
from plantain.train.preference_plan import Preference
from plantain.train.supervised import encode_pairs, fine_tune, fixed_loss
from plantain.train.weights import digest, make_trainable, save_lora
from train.moles import INSTRUCTION, pairs, preferences

SIZE = 64


@cache
def untrained():
    pipe = tiny_instruct_pix2pix(seed=0, words=("remove", "the", "mole"))
    pipe.set_progress_bar_config(disable=True)
    return pipe


def fresh():
    return copy.deepcopy(untrained())


def learned(pipe) -> dict[str, torch.Tensor]:
    return {name: weight for name, weight in pipe.unet.named_parameters() if weight.requires_grad}


@pytest.mark.parametrize(("rank", "rate", "least"), [(None, 1e-3, 0.4), (8, 1e-2, 0.1)])
def test_twenty_steps_cut_the_loss_on_four_pairs(
    tmp_path: Path, rank: int | None, rate: float, least: float
) -> None:
    pipe = fresh()
    data = encode_pairs(Encoder(pipe, SIZE), pairs(4))
    before = fixed_loss(pipe, data)
    schedule = Schedule(20, rate, batch=4, seed=1)
    trained = fine_tune(pipe, data, schedule, tmp_path, base="tiny", lora_rank=rank)
    assert trained.step == len(trained.log) == 20
    assert fixed_loss(pipe, data) < (1 - least) * before


def test_a_batch_in_parts_has_the_gradient_of_the_whole_and_bfloat16_nearly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step on six pairs: at once, two by two, and in bfloat16, whose weights and gradients are float32."""
    found = {}
    for name, at_once, bf16 in (("whole", 8, False), ("parts", 2, False), ("bf16", 8, True)):
        monkeypatch.setattr("plantain.train.supervised.LEARNED_AT_ONCE", at_once)
        pipe = fresh()
        precisions: set[torch.dtype] = set()
        pipe.unet.mid_block.register_forward_hook(lambda *said, seen=precisions: seen.add(said[2].dtype))
        data = encode_pairs(Encoder(pipe, SIZE), pairs(6))
        trained = fine_tune(
            pipe, data, Schedule(1, 1e-3, batch=6, clip=1e9), tmp_path / name, base="tiny", bf16=bf16
        )
        assert precisions == {torch.bfloat16 if bf16 else torch.float32}
        gradients = torch.cat([weight.grad.flatten() for weight in learned(pipe).values()])
        assert gradients.dtype is torch.float32
        found[name] = gradients, trained.log[0]["loss"]
    whole, loss = found["whole"]
    for name, far in (("parts", 1e-4), ("bf16", 0.05)):
        gradients, other = found[name]
        assert float((gradients - whole).norm() / whole.norm()) < far
        assert other == pytest.approx(loss, rel=far)


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    schedule = Schedule(8, 1e-3, batch=2, seed=5, checkpoint_every=3)

    def train(folder: Path, stop_at: int | None) -> tuple[str, int]:
        pipe = fresh()
        data = encode_pairs(Encoder(pipe, SIZE), pairs(3))
        done: list[int] = []
        trained = fine_tune(
            pipe,
            data,
            schedule,
            folder,
            base="tiny",
            on_step=lambda step, noted: done.append(step),
            stop=lambda: stop_at is not None and len(done) >= stop_at,
        )
        return digest(learned(pipe)), trained.step

    whole, _ = train(tmp_path / "whole", None)
    first, step = train(tmp_path / "halves", 4)
    assert (first != whole, step) == (True, 4)
    again, step = train(tmp_path / "halves", None)
    assert (again, step) == (whole, 8)
    assert train(tmp_path / "halves", None) == (whole, 8)  # nothing is left to do


def test_a_kill_between_renames_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    weight = {"w": torch.nn.Parameter(torch.zeros(3))}
    optimizer = torch.optim.AdamW(weight.values())
    checkpoints.save(tmp_path, weight, optimizer, checkpoints.Checkpoint(1, "a", ()))
    (tmp_path / checkpoints.NAME).rename(tmp_path / checkpoints.OLD)  # as if killed between the two renames
    found = checkpoints.load(tmp_path, weight, optimizer, "a")
    assert found is not None
    assert found.step == 1


def test_another_training_is_not_continued(tmp_path: Path) -> None:
    pipe = fresh()
    data = encode_pairs(Encoder(pipe, SIZE), pairs(2))
    fine_tune(pipe, data, Schedule(1, 1e-3), tmp_path, base="tiny")
    with pytest.raises(InputError, match="another training"):
        fine_tune(fresh(), data, Schedule(1, 1e-4), tmp_path, base="tiny")
    (tmp_path / checkpoints.NAME / "weights.safetensors").write_bytes(b"short")
    with pytest.raises(InputError, match="cannot be read"):
        fine_tune(fresh(), data, Schedule(1, 1e-3), tmp_path, base="tiny")


def test_adapters_saved_and_loaded_give_the_identical_image(tmp_path: Path) -> None:
    pipe = fresh()
    data = encode_pairs(Encoder(pipe, SIZE), pairs(2))
    fine_tune(pipe, data, Schedule(5, 1e-2, batch=2), tmp_path / "training", base="tiny", lora_rank=4)
    save_lora(pipe, tmp_path / "lora")

    def edited(model) -> np.ndarray:
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
def supervised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """Weights after supervised steps: without them preferences are not learned."""
    pipe = fresh()
    data = encode_pairs(Encoder(pipe, SIZE), pairs(8))
    fine_tune(pipe, data, Schedule(50, 2e-3, batch=4), tmp_path_factory.mktemp("first"), base="tiny")
    return {name: weight.detach().clone() for name, weight in pipe.unet.state_dict().items()}


def after_supervision(weights: dict[str, torch.Tensor]):
    pipe = fresh()
    pipe.unet.load_state_dict(weights)
    return pipe


def test_preference_training_helps_held_out_pairs_within_its_bound(
    tmp_path: Path, supervised: dict[str, torch.Tensor]
) -> None:
    pipe = after_supervision(supervised)
    encoder = Encoder(pipe, SIZE)
    learn = encode_preferences(encoder, preferences(6))
    observer = encode_preferences(encoder, preferences(6, first=20))
    seen: list[tuple[int, Preference]] = []
    prefer(
        DenoisingPreference(pipe),
        learn,
        observer,
        Schedule(20, 4e-4, batch=4, checkpoint_every=20),
        tmp_path,
        base="tiny",
        lora_rank=4,
        beta=1000.0,
        on_standing=lambda step, where: seen.append((step, where)),
    )
    ((step, where),) = seen
    assert step == 20
    assert where.accuracy > 0.6  # nothing learned: 0, as no gap differs from the reference's
    assert where.winner_ratio <= 1.05


def test_the_brake_ends_a_training_that_spoils_the_winner(
    tmp_path: Path, supervised: dict[str, torch.Tensor]
) -> None:
    pipe = after_supervision(supervised)
    data = encode_preferences(Encoder(pipe, SIZE), preferences(2))
    schedule = Schedule(12, 3e-2, batch=2, checkpoint_every=3)
    model = DenoisingPreference(pipe)
    trained = prefer(model, data, data, schedule, tmp_path, base="tiny", lora_rank=4, bound=1.05)
    assert "over the bound 1.05" in trained.stopped
    assert trained.step < 12
    assert standing(model, data).winner_ratio <= 1.05  # the weights before it went wrong
    again = prefer(
        DenoisingPreference(after_supervision(supervised)), data, data, schedule, tmp_path,
        base="tiny", lora_rank=4, bound=1.05,
    )  # fmt: skip
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


def test_conditions_are_dropped_in_three_equal_cases() -> None:
    n, share = 9000, 0.1
    source, text, empty = torch.ones(n, 1, 1, 1), torch.ones(n, 1, 1), torch.zeros(1, 1, 1)
    image, words = dropped(
        source, text, empty, torch.rand(n, generator=torch.Generator().manual_seed(0)), share
    )
    no_image, no_text = image.flatten() == 0, words.flatten() == 0
    for case in (no_text & ~no_image, no_text & no_image, no_image & ~no_text):
        assert abs(float(case.float().mean()) - share) < 0.015


@pytest.mark.parametrize("size", [(512, 223), (223, 512), (409, 512), (65, 101), (1500, 400), (1024, 30)])
@pytest.mark.parametrize("side", [64, 256])
def test_training_sees_the_canvas_that_an_edit_is_made_on(
    size: tuple[int, int], side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pixel for pixel what the VAE is handed by the engine that edits, and by the training's encoder."""
    width, height = size
    rng = np.random.default_rng(3)
    picture = rng.integers(60, 255, (height, width, 3)).astype(np.uint8)
    pipe = fresh()
    seen: list[torch.Tensor] = []

    class Enough(Exception):
        pass

    def encode(image: torch.Tensor, *args: object, **more: object) -> None:
        seen.append(image)
        raise Enough

    monkeypatch.setattr(pipe.vae, "encode", encode)
    with pytest.raises(Enough):
        Encoder(pipe, side).condition(picture)
    frame = METHODS["instruct-pix2pix"].frame.frame(width, height, side)
    with pytest.raises(Enough):
        pipe("x", image=Image.fromarray(frame.enter(picture)), num_inference_steps=1, output_type="np")
    learned_from, edited_on = seen
    assert learned_from.shape == edited_on.shape
    assert torch.allclose(learned_from, edited_on, atol=1e-6)
    assert (learned_from.amax(dim=(1, 3)) > -0.5).all()  # 60 of 255 is -0.53: no row of padding is black,
    assert (learned_from.amax(dim=(1, 2)) > -0.5).all()  # and no column


def test_border_around_a_narrow_image_counts_for_nothing(tmp_path: Path) -> None:
    """1024 x 30 lies on 64 x 64 with 31 rows of repeated edge above and below: 2 of 64 rows are the image."""
    pipe = fresh()
    encoder = Encoder(pipe, 64)
    weight = encoder.weight(np.zeros((30, 1024, 3), np.uint8))
    rows = weight.shape[-2]
    assert weight.sum() == pytest.approx(weight.shape[-1] * rows * 2 / 64)
    assert Encoder(pipe, 512).weight(np.zeros((223, 512, 3), np.uint8)).min() == 1.0
    denoising = Denoising(pipe)
    shape = (1, 4, rows, weight.shape[-1])
    drawn = draw(0, "x", 0, shape, denoising.timesteps)
    source, text, target = torch.zeros(shape), encoder.texts(["x"]), torch.zeros(shape)
    ones = torch.ones(1, 1, *shape[-2:])
    with torch.no_grad():
        whole = denoising.errors(target, source, text, ones, drawn)
        half = ones.clone()
        half[..., : rows // 2, :] = 0
        other = 1 - half
        parts = [float(denoising.errors(target, source, text, part, drawn)) for part in (half, other)]
    assert float(whole) == pytest.approx(sum(parts) / 2, rel=1e-5)


def test_what_is_held_out_is_measured_alike_in_any_chunks(
    supervised: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = after_supervision(supervised)
    data = encode_preferences(Encoder(pipe, SIZE), preferences(3))
    for name, weight in make_trainable(pipe, 4, 0).items():
        if "lora_B" in name:  # else it is its own reference, and every ratio 1
            torch.nn.init.normal_(weight, std=0.2, generator=torch.Generator().manual_seed(1))
    calls: list[int] = []
    forward = pipe.unet.forward
    monkeypatch.setattr(
        pipe.unet, "forward", lambda x, *a, **k: (calls.append(len(x)), forward(x, *a, **k))[1]
    )
    found = []
    for most in (1, 2, 8):
        found.append(standing(DenoisingPreference(pipe, most), data, draws=1))
        assert max(calls) == 2 * min(most, 3)
        calls.clear()
    assert found[0].winner_ratio == pytest.approx(found[2].winner_ratio, rel=1e-5)
    assert found[1].loser_ratio == pytest.approx(found[2].loser_ratio, rel=1e-5)


def test_memory_does_not_grow_with_what_is_held_out() -> None:
    """5,000 pairs of 433 kB would be 2 GB: what is kept of each is where it lies in a file."""
    parts = {"source": torch.zeros(4, 64, 64), "winner": torch.zeros(4, 64, 64), "text": torch.zeros(77, 32)}
    tracemalloc.start()
    data = encode((str(number), parts) for number in range(400))
    data.rows([0, 399], torch.device("cpu"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.chunks(8)[-1] == list(range(392, 400))
    assert peak < 2_000_000  # all of it is 56 MB


def test_only_what_learns_is_trainable() -> None:
    pipe = fresh()
    weights = make_trainable(pipe, 4, 0)
    assert weights
    assert all("lora" in name for name in weights)
    assert not any(weight.requires_grad for weight in pipe.vae.parameters())
