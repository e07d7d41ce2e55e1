"""Flow-DPO on tiny pipelines: the loss by hand and by diffusers' scheduler, and trainings as wholes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers import FlowMatchEulerDiscreteScheduler

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.methods import FLUX_DEV
from plantain.models.diffusers.pipelines.runner import Runner, runner_for
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.tiny.saving import save_tiny
from plantain.models.diffusers.weights import LORA
from plantain.records import InputError
from plantain.roles.options import ProviderOptions
from plantain.train.base import TrainingBase, open_base
from plantain.train.examples.pairs import ListedExample, PreferencePair
from plantain.train.flow.conditions import FlowEncoder, encode_flow_pairs
from plantain.train.flow.matching import flow_fine_tune
from plantain.train.flow.methods import FLOW_METHODS
from plantain.train.flow.preferences import FlowPreference, encode_flow_preferences
from plantain.train.loop.training import Schedule
from plantain.train.preference import PreferenceErrors, prefer, preference_loss, standing
from plantain.train.preference_plan import PreferenceObserver, PreferencePlan
from plantain.train.preference_run import MODEL, SUPERVISED, train_preferences
from plantain.train.weights import save_lora
from train.moles import pairs, preferences

SIDE = 64
OPTIONS = ProviderOptions(device="cpu", side=SIDE, accept_licence=(FLUX_DEV,))


def tiny(method: str, root: Path) -> TrainingBase:
    save_tiny(method, root / method)
    return open_base(f"diffusers/{root / method}", OPTIONS, adapters=True)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> TrainingBase:
    return tiny("flux-kontext", tmp_path_factory.mktemp("flow"))


@pytest.fixture(scope="module", params=FLOW_METHODS)
def any_base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TrainingBase:
    """Of each class that Flow-DPO says it trains."""
    return tiny(request.param, tmp_path_factory.mktemp("flow"))


class Preferences:
    """Preferences in memory."""

    name = "preferences"
    digest = "e" * 64

    def listed(self) -> list[ListedExample]:
        return [ListedExample(pair.id, pair.task, pair.cluster) for pair in preferences(5)]

    def read(self, ids: Sequence[str]) -> Iterator[PreferencePair]:
        return (pair for pair in preferences(5) if pair.id in set(ids))


def edited(runner: Runner) -> np.ndarray:
    steering = Steering.of({"steps": 2})
    (drawn,) = runner.edit([pairs(1)[0].before], [Job(b"", "remove the mole", 5, side=SIDE)], steering)
    assert drawn.pixels is not None
    return drawn.pixels


def test_the_loss_is_the_paper_s_by_hand() -> None:
    """Gap (0.3 - 0.4) - (0.5 - 0.45) = -0.15, times -10 / 2 is 0.75, and -log sigmoid(0.75) = log(1 + e^-0.75).

    The second example has the winner spoiled by 0.2 and the loser left: -10 / 2 x 0.2 = -1, and log(1 + e).
    """
    errors = PreferenceErrors(*map(torch.tensor, ([0.3, 0.6], [0.5, 0.3], [0.4, 0.4], [0.45, 0.3])))
    loss = preference_loss(errors, 10.0).tolist()
    assert loss == pytest.approx([0.386871, 1.313262], abs=1e-5)
    same = PreferenceErrors(*(torch.ones(1),) * 4)
    assert float(preference_loss(same, 5000.0)) == pytest.approx(math.log(2))  # nothing learned


def test_errors_are_those_of_the_scheduler_and_the_bare_transformer(any_base: TrainingBase) -> None:
    """Noise by diffusers' `scale_noise`, the reference with adapters off: the squared error of noise minus latents."""
    runner = any_base.runner()
    data = encode_flow_preferences(FlowEncoder(runner, SIDE), preferences(2))
    model = FlowPreference(runner)
    weights = model.make_adapters(2, 0)
    assert not any("reference" in name for name in weights)
    for name, weight in weights.items():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.2, generator=torch.Generator().manual_seed(1))
    seen: list[dict[str, object]] = []
    transformer = runner.pipe.transformer
    hook = transformer.register_forward_pre_hook(lambda _m, _a, said: seen.append(said), with_kwargs=True)
    found = model.errors(data, [1], 0, "step", 3)
    hook.remove()
    row = data.rows([1], torch.device("cpu"))
    noise, sigma = model._matching.drawn("1", tuple(row["source"].shape), 0, "step", 3)
    scheduler = FlowMatchEulerDiscreteScheduler.from_config(runner.pipe.scheduler.config)
    timestep = scheduler.timesteps[scheduler.sigmas == sigma]
    values = {}
    for kind, call in (("winner", 0), ("loser", 1)):
        tokens = row[kind].flatten(2).transpose(1, 2)
        noisy = scheduler.scale_noise(tokens, timestep, noise)
        for number in (call, call + 2):  # of the reference, then of the model: one noise for all four
            shown = seen[number]["hidden_states"]
            assert torch.allclose(shown[:, : tokens.shape[1]], noisy, atol=1e-6)  # type: ignore[index]
        for adapters, name in ((True, kind), (False, f"{kind}_reference")):
            (transformer.enable_adapters if adapters else transformer.disable_adapters)()
            with torch.no_grad():
                said = transformer(**seen[call])[0][:, : tokens.shape[1]]
            values[name] = float((said - (noise - tokens)).pow(2).mean())
    for name, value in values.items():
        assert float(getattr(found, name).detach()) == pytest.approx(value, rel=1e-4), name
    assert values["winner"] != pytest.approx(values["winner_reference"], rel=1e-3)
    assert found.winner.requires_grad
    assert not found.winner_reference.requires_grad


def test_a_fresh_model_is_its_own_reference_and_stays_in_the_optimizer(any_base: TrainingBase) -> None:
    runner = any_base.runner()
    data = encode_flow_preferences(FlowEncoder(runner, SIDE), preferences(2))
    model = FlowPreference(runner)
    weights = model.make_adapters(2, 0)
    where = standing(model, data, draws=1)
    assert (where.accuracy, where.winner_ratio, where.loser_ratio) == (0.0, 1.0, 1.0)
    assert all(
        weight.requires_grad for weight in weights.values()
    )  # whichever adapters were switched on last


@pytest.mark.slow
@pytest.mark.parametrize("method", ["flux2-klein", "qwen-image-edit"])
def test_other_classes_are_trained_and_plain_diffusers_draws_the_same(method: str, tmp_path: Path) -> None:
    """As Kontext below, in the fewest steps."""
    base = tiny(method, tmp_path)
    plan = PreferencePlan(
        steps=1, supervised_steps=1, supervised_rate=1e-2, side=SIDE, lora_rank=2, rate=1e-2, every=1,
        beta=100.0, held_out=0.4, bound=100.0,
    )  # fmt: skip
    result = train_preferences(Preferences(), base, plan, tmp_path / "out", observer=PreferenceObserver())
    assert result.form == "Flow-DPO"
    assert result.model is not None
    untrained = edited(base.runner())
    ours = edited(runner_for(plan_editor(f"diffusers/{result.model}", OPTIONS).loading, "cpu"))
    plain = base.runner()
    plain.pipe.load_lora_weights(result.model)  # diffusers' own way
    assert np.array_equal(edited(plain), ours)
    assert not np.array_equal(ours, untrained)


@pytest.mark.slow
def test_preferences_help_held_out_pairs_within_the_bound(base: TrainingBase, tmp_path: Path) -> None:
    runner = base.runner()
    encoder = FlowEncoder(runner, SIDE)
    flow_fine_tune(
        runner, encode_flow_pairs(encoder, pairs(6)), Schedule(40, 2e-2, batch=2), tmp_path / "first",
        base="tiny", rank=4,
    )  # fmt: skip
    save_lora(runner.pipe, tmp_path / "supervised")
    runner = base.runner()
    learn = encode_flow_preferences(FlowEncoder(runner, SIDE), preferences(6))
    held_out = encode_flow_preferences(FlowEncoder(runner, SIDE), preferences(6, first=20))
    model = FlowPreference(runner, tmp_path / "supervised" / LORA)
    schedule = Schedule(20, 1e-3, batch=2, checkpoint_every=20)
    prefer(model, learn, held_out, schedule, tmp_path / "second", base="tiny", lora_rank=4, beta=200.0)
    where = standing(model, held_out, draws=4)
    assert where.accuracy > 0.6  # nothing learned: 0; a coin: 0.5
    assert where.winner_ratio <= 1.05


@pytest.mark.slow
def test_an_editor_is_trained_watched_resumed_and_gone_on_with(base: TrainingBase, tmp_path: Path) -> None:
    plan = PreferencePlan(
        steps=4, supervised_steps=3, supervised_rate=1e-2, side=SIDE, lora_rank=2, rate=1e-2, every=2,
        beta=100.0, held_out=0.4, bound=100.0,
    )  # fmt: skip
    steps: list[int] = []

    class Watching(PreferenceObserver):
        def step(self, step: int, loss: float) -> None:
            steps.append(step)

    def train(out: Path, stop: int = -1):
        return train_preferences(
            Preferences(), base, plan, out, observer=Watching(), stop=lambda: len(steps) == stop
        )

    whole = train(tmp_path / "whole")
    steps.clear()
    assert train(tmp_path / "halves", stop=5).model is None
    result = train(tmp_path / "halves")
    assert (len(steps), result.form) == (7, "Flow-DPO")
    assert result.model is not None
    assert whole.model is not None
    assert result.curve == whole.curve
    assert (result.model / LORA).read_bytes() == (whole.model / LORA).read_bytes()
    assert train(tmp_path / "halves") == result
    card = " ".join((result.model / "README.md").read_text(encoding="utf-8").split())
    assert "4 steps of Flow-DPO (beta 100" in card

    def drawn(folder: Path) -> np.ndarray:
        return edited(runner_for(plan_editor(f"diffusers/{folder}", OPTIONS).loading, "cpu"))

    pictures = [drawn(folder) for folder in (base.folder, tmp_path / "halves" / SUPERVISED, result.model)]
    assert len({picture.tobytes() for picture in pictures}) == 3
    plain = base.runner()
    plain.pipe.load_lora_weights(tmp_path / "halves" / MODEL)  # diffusers' own way
    assert np.array_equal(edited(plain), pictures[2])

    again = open_base(f"diffusers/{result.model}", OPTIONS, adapters=True)  # begins where that ended
    assert again.adapters == result.model / LORA
    more = replace(plan, supervised_steps=0, steps=1, every=1, rate=1e-9)
    result = train_preferences(Preferences(), again, more, tmp_path / "more", observer=Watching())
    assert result.model is not None
    assert np.abs(drawn(result.model).astype(int) - pictures[2].astype(int)).max() <= 1
    with pytest.raises(InputError, match="of another rank or for other layers"):
        train_preferences(
            Preferences(), again, replace(more, lora_rank=3), tmp_path / "other", observer=Watching()
        )
