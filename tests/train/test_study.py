"""Complete fine-tuning studies and preference trainings on tiny models and small images."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.provider import Settings
from plantain.models.diffusers.weights import LORA
from plantain.records import InputError
from plantain.train.base import TrainingBase, open_base
from plantain.train.finished import DONE
from plantain.train.pairs import ListedExample, PreferencePair, TrainingPair
from plantain.train.plans import FinetunePlan, PreferencePlan, TrainingProgress
from plantain.train.preference import train_preferences
from plantain.train.split import split_preferences, split_task
from plantain.train.study import cells_of, splits_of, train_study
from train.moles import INSTRUCTION, Counting, fresh, pairs, preferences

OPTIONS = Settings(device="cpu")


class Moles:
    """Images of two tasks, in memory."""

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
    fresh().save_pretrained(folder)
    (folder / "README.md").write_text("---\nlicense: mit\n---\nTiny.\n", encoding="utf-8")
    return open_base(f"diffusers/{folder}", OPTIONS)


def small(**changes: object) -> FinetunePlan:
    usual: dict[str, object] = {"sizes": (1, 2), "seeds": 1, "steps_per_sample": 2, "side": 64, "per_task": 4}
    return FinetunePlan(**{**usual, **changes})  # type: ignore[arg-type]


def test_study_trains_every_model_once_and_resumes_after_a_stop(tmp_path: Path, base: TrainingBase) -> None:
    source, plan, progress = Moles(4), small(), Counting()
    assert not train_study(source, base, plan, tmp_path, progress=progress, stop=lambda: progress.steps >= 3)
    assert progress.steps == 3
    assert train_study(source, base, plan, tmp_path, progress=progress)
    # two tasks, one and two samples, two steps each; the one step of the unfinished second model is repeated
    assert progress.steps == 2 * (2 + 4) + 1
    assert train_study(source, base, plan, tmp_path, progress=progress)
    assert progress.steps == 13
    cells = list(cells_of(plan, splits_of(plan, source.listed())))
    assert len(cells) == 4
    for cell in cells:
        record = json.loads((tmp_path / cell.place / DONE).read_text(encoding="utf-8"))
        assert sorted(record["trained_on"]) == sorted(cell.training)
        found = plan_editor(f"diffusers/{tmp_path / cell.place}", OPTIONS)
        assert (found.method.name, found.terms.licence) == ("instruct-pix2pix", "mit")


def test_trained_adapters_are_usable_as_an_editor_and_as_a_base(tmp_path: Path, base: TrainingBase) -> None:
    plan = small(sizes=(2,), tasks=1, lora_rank=2, learning_rate=1e-2)
    train_study(Moles(4), base, plan, tmp_path, progress=TrainingProgress())
    (cell,) = cells_of(plan, splits_of(plan, Moles(4).listed()))
    folder = tmp_path / cell.place
    assert (folder / LORA).is_file()
    assert plan_editor(f"diffusers/{folder}", OPTIONS).lora
    merged = open_base(f"diffusers/{folder}", OPTIONS).load().unet.state_dict()
    first = base.load().unet.state_dict()
    assert merged.keys() == first.keys()
    assert any(not torch.equal(merged[name], first[name]) for name in first)
    assert all(torch.isfinite(weight).all() for weight in merged.values())


def test_splits_are_nested_and_keep_their_held_out_samples() -> None:
    listed = [ListedExample(f"{n}", "t", f"c{n // 3}", reserved=n >= 27) for n in range(30)]
    split = split_task(listed, "t", seed=4, largest=16, per_task=30)
    assert len(split.training) >= 16
    assert not {n for n in split.training if int(n) >= 27}
    clusters = {
        name: {f"c{int(n) // 3}" for n in ids} for name, ids in (("t", split.training), ("h", split.held_out))
    }
    assert not clusters["t"] & clusters["h"]
    assert split == split_task(list(reversed(listed)), "t", seed=4, largest=16, per_task=30)
    with pytest.raises(InputError, match="too few"):
        split_task(listed[:16], "t", seed=4, largest=16, per_task=30)
    one = [*listed[:6], ListedExample("x", "u", "c9"), ListedExample("y", "u", "c9")]
    with pytest.raises(InputError, match=r"one patient or image, and two groups .* another --task: 't'$"):
        split_task(one, "u", seed=4, largest=1, per_task=30)
    with pytest.raises(InputError, match=r"choose smaller sizes, e.g. --set sizes=1 --task 't'$"):
        split_task(one, "u", seed=4, largest=16, per_task=30)
    # "u" has more examples than "t", but all are of one group.
    more = [*listed[:6], *(ListedExample(f"u{n}", "u", "c9") for n in range(9))]
    assert [split.task for split in splits_of(FinetunePlan(sizes=(1,), tasks=1), more)] == ["t"]


def test_preferences_are_trained_monitored_and_resumed(tmp_path: Path, base: TrainingBase) -> None:
    plan = PreferencePlan(
        steps=4,
        supervised_steps=3,
        side=64,
        lora_rank=2,
        learning_rate=1e-4,
        every=2,
        beta=100.0,
        held_out=0.4,
    )
    progress = Counting()
    first = train_preferences(
        Preferences(), base, plan, tmp_path, progress=progress, stop=lambda: progress.steps >= 5
    )
    assert (first, progress.steps) == (None, 5)
    result = train_preferences(Preferences(), base, plan, tmp_path, progress=progress)
    assert progress.steps == 5 + 4  # the three supervised steps are kept
    assert result is not None
    assert (len(result["learned_from"]), len(result["monitored"])) == (3, 2)
    assert (result["step"], result["stopped"]) == (4, "")
    assert plan_editor(f"diffusers/{tmp_path / 'model'}", OPTIONS).terms.licence == "mit"
    assert train_preferences(Preferences(), base, plan, tmp_path, progress=progress) == result
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "must not be used for diagnosis" in " ".join(card.split())


def test_a_release_s_test_split_is_neither_trained_on_nor_monitored() -> None:
    # Monitored pairs decide when the training ends. One group has an example in the test split, and one outside.
    listed = [ListedExample(f"{n}", "t", f"c{n // 2}", reserved=n >= 14, final=n >= 17) for n in range(20)]
    learn, watch = split_preferences(listed, 0.2, 0)
    assert {"14", "15"} <= set(watch)  # validation
    assert not {"16", "17", "18", "19"} & {*learn, *watch}
    assert len(learn) + len(watch) == 16


def test_a_training_started_with_other_settings_is_not_resumed(tmp_path: Path, base: TrainingBase) -> None:
    progress = Counting()
    plan = small(sizes=(2,), tasks=1)
    train_study(Moles(4), base, plan, tmp_path / "a", progress=progress)
    with pytest.raises(InputError, match="another training"):
        train_study(Moles(4), base, small(sizes=(2,), tasks=1, side=72), tmp_path / "a", progress=progress)
    started = {"steps": 2, "supervised_steps": 1, "side": 64, "lora_rank": 2, "held_out": 0.4}
    plans = [PreferencePlan(**started, supervised_learning_rate=rate) for rate in (1e-4, 1e-3)]  # type: ignore[arg-type]
    train_preferences(Preferences(), base, plans[0], tmp_path / "b", progress=progress, stop=lambda: True)
    with pytest.raises(InputError, match="another training"):
        train_preferences(Preferences(), base, plans[1], tmp_path / "b", progress=progress)
