"""The fine-tuning study and preference training as wholes, on tiny models and small pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.tiny.stable_diffusion import tiny_instruct_pix2pix
from plantain.models.diffusers.weights import LORA
from plantain.records import InputError
from plantain.roles.options import ProviderOptions
from plantain.train.base import TrainingBase, open_base
from plantain.train.examples.pairs import ListedExample, PreferencePair, TrainingPair
from plantain.train.finished import DONE
from plantain.train.preference_plan import PreferenceObserver, PreferencePlan
from plantain.train.preference_run import train_preferences
from plantain.train.split import choose_tasks, split_task, split_watched
from plantain.train.study import train_study
from plantain.train.study_plan import StudyObserver, StudyPlan, cells_of, splits_of
from plantain.train.supervised import fixed_loss
from train.moles import INSTRUCTION, pairs, preferences

OPTIONS = ProviderOptions(device="cpu")


class Moles:
    """Pictures of two tasks, in memory."""

    name = "moles"
    digest = "d" * 64

    def __init__(self, each: int) -> None:
        self.pairs = [
            TrainingPair(
                f"{task}{pair.id}", task, f"{task}{pair.cluster}", INSTRUCTION, pair.before, pair.after
            )
            for task in ("a", "b")
            for pair in pairs(each)
        ]

    def listed(self) -> list[ListedExample]:
        return [ListedExample(pair.id, pair.task, pair.cluster) for pair in self.pairs]

    def read(self, ids: Sequence[str]) -> Iterator[TrainingPair]:
        return (pair for pair in self.pairs if pair.id in set(ids))


class Preferences:
    """Preferences in memory."""

    name = "preferences"
    digest = "e" * 64

    def listed(self) -> list[ListedExample]:
        return [ListedExample(pair.id, pair.task, pair.cluster) for pair in preferences(5)]

    def read(self, ids: Sequence[str]) -> Iterator[PreferencePair]:
        return (pair for pair in preferences(5) if pair.id in set(ids))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> TrainingBase:
    folder = tmp_path_factory.mktemp("base")
    tiny_instruct_pix2pix(seed=0, words=("remove", "the", "mole")).save_pretrained(folder)
    (folder / "README.md").write_text("---\nlicense: mit\n---\nTiny.\n", encoding="utf-8")
    return open_base(f"diffusers/{folder}", OPTIONS)


def small(**changes: object) -> StudyPlan:
    usual: dict[str, object] = {
        "sizes": (0, 1, 2),
        "seeds": 1,
        "steps_per_sample": 2,
        "side": 64,
        "per_task": 4,
    }
    return StudyPlan(**{**usual, **changes})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model's loss is, is measured with sixteen draws of noise each time; no test here asks for its value."""
    monkeypatch.setattr("plantain.train.learners.fixed_loss", partial(fixed_loss, draws=1))


class Counting(StudyObserver):
    def __init__(self) -> None:
        self.steps = 0

    def step(self, cell: object, step: int, loss: float) -> None:
        self.steps += 1


def test_a_study_trains_every_model_once_and_goes_on_after_a_stop(tmp_path: Path, base: TrainingBase) -> None:
    source, plan, observer = Moles(4), small(), Counting()
    assert not train_study(source, base, plan, tmp_path, observer=observer, stop=lambda: observer.steps >= 3)
    assert observer.steps == 3
    assert train_study(source, base, plan, tmp_path, observer=observer)
    assert observer.steps == 2 * (2 + 4)  # two tasks, one and two samples, two steps each: none twice
    assert train_study(source, base, plan, tmp_path, observer=observer)
    assert observer.steps == 12
    cells = list(cells_of(plan, splits_of(plan, source.listed())))
    assert len(cells) == 4
    for cell in cells:
        told = json.loads((tmp_path / cell.place / DONE).read_text(encoding="utf-8"))
        assert sorted(told["trained_on"]) == sorted(cell.training)
        found = plan_editor(f"diffusers/{tmp_path / cell.place}", OPTIONS)
        assert (found.method.name, found.terms.licence) == ("instruct-pix2pix", "mit")
    assert not list(tmp_path.rglob("*.training"))


def test_another_study_is_refused(tmp_path: Path, base: TrainingBase) -> None:
    train_study(Moles(4), base, small(sizes=(1,), tasks=1), tmp_path, observer=StudyObserver())
    with pytest.raises(InputError, match="another study"):
        train_study(
            Moles(4), base, small(sizes=(1,), tasks=1, learning_rate=1e-4), tmp_path, observer=StudyObserver()
        )


def test_trained_adapters_are_an_editor_and_a_base_by_themselves(tmp_path: Path, base: TrainingBase) -> None:
    plan = small(sizes=(2,), tasks=1, lora_rank=2, learning_rate=1e-2)
    train_study(Moles(4), base, plan, tmp_path, observer=StudyObserver())
    (cell,) = cells_of(plan, splits_of(plan, Moles(4).listed()))
    folder = tmp_path / cell.place
    assert (folder / LORA).is_file()
    assert plan_editor(f"diffusers/{folder}", OPTIONS).lora is not None
    merged = open_base(f"diffusers/{folder}", OPTIONS).load().unet.state_dict()
    first = base.load().unet.state_dict()
    assert merged.keys() == first.keys()
    assert any(not torch.equal(merged[name], first[name]) for name in first)
    assert all(torch.isfinite(weight).all() for weight in merged.values())


def test_splits_are_nested_whole_and_the_same_for_every_size() -> None:
    listed = [ListedExample(f"{n}", "t", f"c{n // 3}", reserved=n >= 27) for n in range(30)]
    split = split_task(listed, "t", seed=4, largest=16)
    assert len(split.training) >= 16
    assert not {n for n in split.training if int(n) >= 27}
    clusters = {
        name: {f"c{int(n) // 3}" for n in ids} for name, ids in (("t", split.training), ("h", split.held_out))
    }
    assert not clusters["t"] & clusters["h"]
    assert split == split_task(list(reversed(listed)), "t", seed=4, largest=16)
    with pytest.raises(InputError, match="too few"):
        split_task(listed[:16], "t", seed=4, largest=16)


def test_tasks_are_those_with_most_samples() -> None:
    listed = [
        ListedExample(f"{task}{n}", task, f"{n}")
        for task, count in (("x", 3), ("y", 5), ("z", 3))
        for n in range(count)
    ]
    assert choose_tasks(listed, 2) == ("y", "x")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sizes": ()}, "--sizes"),
        ({"side": 100}, "--side"),
        ({"seeds": 0}, "--seeds"),
        ({"learning_rate": 0.0}, "--learning-rate"),
        ({"named": ("nothing",)}, "no such task"),
    ],
)
def test_wrong_plans_are_one_line(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        splits_of(small(**changes), Moles(4).listed())


def test_preferences_are_trained_watched_and_resumed(tmp_path: Path, base: TrainingBase) -> None:
    plan = PreferencePlan(
        steps=4, supervised_steps=3, side=64, lora_rank=2, rate=1e-4, every=2, beta=100.0, held_out=0.4
    )
    steps: list[int] = []

    class Watching(PreferenceObserver):
        def step(self, step: int, loss: float) -> None:
            steps.append(step)

    first = train_preferences(
        Preferences(), base, plan, tmp_path, observer=Watching(), stop=lambda: len(steps) >= 5
    )
    assert (first.model, len(steps)) == (None, 5)
    result = train_preferences(Preferences(), base, plan, tmp_path, observer=Watching())
    assert len(steps) == 7
    assert (result.pairs, result.held_out) == (3, 2)
    assert [step for step, _ in result.curve] == [0, 2, 4]
    assert result.model is not None
    assert plan_editor(f"diffusers/{result.model}", OPTIONS).terms.licence == "mit"
    assert train_preferences(Preferences(), base, plan, tmp_path, observer=Watching()) == result
    card = (result.model / "README.md").read_text(encoding="utf-8")
    assert "must not be used for diagnosis" in " ".join(card.split())


def test_preferences_of_one_group_cannot_be_split() -> None:
    with pytest.raises(InputError, match="too few"):
        split_watched(
            [ListedExample("0", "t", "c"), ListedExample("1", "t", "c")], 0.2, 0, "preferences", "x"
        )


def test_a_release_s_test_split_is_neither_learned_from_nor_watched() -> None:
    # What is watched decides when the training ends. One group has one example in the test split, and one outside.
    listed = [ListedExample(f"{n}", "t", f"c{n // 2}", reserved=n >= 14, final=n >= 17) for n in range(20)]
    learn, observer = split_watched(listed, 0.2, 0, "preferences", "x")
    assert {"14", "15"} <= set(observer)  # validation
    assert not {"16", "17", "18", "19"} & {*learn, *observer}
    assert len(learn) + len(observer) == 16


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "Flux2KleinPipeline"}', encoding="utf-8")
    with pytest.raises(InputError, match="only InstructPix2Pix"):
        open_base(f"diffusers/{tmp_path}", OPTIONS)
    with pytest.raises(InputError, match="diffusers/FOLDER"):
        open_base("gemini/x", OPTIONS)


def test_what_is_shared_with_the_base_is_linked(tmp_path: Path, base: TrainingBase) -> None:
    plan = small(sizes=(1,), tasks=1)
    train_study(Moles(4), base, plan, tmp_path / "m", observer=StudyObserver())
    (cell,) = cells_of(plan, splits_of(plan, Moles(4).listed()))
    ours = next((tmp_path / "m" / cell.place / "vae").glob("*.safetensors"))
    theirs = next((base.folder / "vae").glob("*.safetensors"))
    assert ours.samefile(theirs) or np.array_equal(ours.read_bytes(), theirs.read_bytes())


def test_what_was_begun_with_other_settings_is_never_gone_on_with(tmp_path: Path, base: TrainingBase) -> None:
    """Neither in a study nor in preferences: the size of the images is part of what a checkpoint is."""
    observer = Counting()
    plan = small(sizes=(2,), tasks=1)
    train_study(Moles(4), base, plan, tmp_path / "a", observer=observer, stop=lambda: observer.steps >= 1)
    with pytest.raises(InputError, match="another training"):
        train_study(Moles(4), base, small(sizes=(2,), tasks=1, side=72), tmp_path / "a", observer=observer)
    begun = PreferencePlan(steps=2, supervised_steps=1, side=64, lora_rank=2, held_out=0.4)
    train_preferences(
        Preferences(), base, begun, tmp_path / "b", observer=PreferenceObserver(), stop=lambda: True
    )
    with pytest.raises(InputError, match="another training"):
        train_preferences(
            Preferences(),
            base,
            replace(begun, supervised_rate=1e-3),
            tmp_path / "b",
            observer=PreferenceObserver(),
        )
