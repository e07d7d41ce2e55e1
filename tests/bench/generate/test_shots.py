"""Arms and their grids; the few-shot study: nested demonstrations, the same held-out samples, no shared source."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.small_bench import Brightener, small_bench
from plantain.bench.benchmark.samples import Sample, plain_image
from plantain.bench.generate.requests import ArmRequest, parse_sweep, planned_arms
from plantain.bench.generate.runfile import Arm
from plantain.bench.generate.shots import choose_study
from plantain.records import InputError


def sample(number: int, task: str, cluster: str, truth: bool = True) -> Sample:
    return Sample(
        id=f"s{number}",
        organ="Skin",
        task=task,
        prompt="Remove the mole.",
        cluster=cluster,
        image=plain_image(f"s{number}", (8, 8), "x"),
        previous=Path("x"),
        size=(8, 8),
        changed=Path("y") if truth else None,
    )


SAMPLES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 40), st.booleans()), min_size=30, max_size=120
).map(
    lambda rows: [
        sample(i, f"t{task}", f"c{cluster}", truth) for i, (task, cluster, truth) in enumerate(rows)
    ]
)


@settings(max_examples=60, deadline=None)
@given(SAMPLES, st.integers(0, 5))
def test_study_splits_by_source_in_any_order(samples: list[Sample], seed: int) -> None:
    by_id = {one.id: one for one in samples}
    try:
        study = choose_study(samples, seed)
    except InputError:
        return
    shuffled = random.Random(seed).sample(samples, len(samples))
    assert choose_study(shuffled, seed) == study
    assert len(study.demonstrations) <= 6
    for task, shown in study.demonstrations.items():
        assert len(shown) == 3
        held_out = [by_id[one] for one in study.samples if by_id[one].task == task]
        assert 1 <= len(held_out) <= 27  # 30 images a task, three of them demonstrations
        clusters = [by_id[one].cluster for one in shown]
        assert len(set(clusters)) == 3
        assert not {one.cluster for one in held_out} & set(clusters)
        assert all(by_id[one].changed is not None for one in (*shown, *study.samples))
    chosen = {by_id[one].task for one in study.samples}
    assert chosen == set(study.demonstrations)


def test_papers_six_tasks_are_the_default_and_others_can_be_named() -> None:
    # The paper's Table 7, in the wording of its Table 5, among larger tasks.
    six = ("Reconstruct ear", "Remove wisdom teeth", "Remove moles, nevi, or black marks",
           "Reconstruct or repair nose skin", "Remove varicose veins", "Repair or reconstruct toenail")  # fmt: skip
    tasks = [*six, "Make hair thicker", "Reconstruct auricle"]
    samples = [sample(i, tasks[i % 8], f"c{i}") for i in range(8 * 20)]
    samples += [sample(1000 + i, "Make hair thicker", f"d{i}") for i in range(9)]
    assert set(choose_study(samples, 0).demonstrations) == set(six)
    named = choose_study(samples, 0, named=["Make hair thicker"], most=16)
    assert {task: len(shown) for task, shown in named.demonstrations.items()} == {"Make hair thicker": 16}
    two = choose_study([sample(0, "t", "a"), sample(1, "t", "b")], 0, most=1)  # one shown, one held out
    assert [*map(len, two.demonstrations.values()), len(two.samples)] == [1, 1]
    with pytest.raises(
        InputError, match=r"--task: no task 'Make hair thick'.*did you mean 'Make hair thicker'"
    ):
        choose_study(samples, 0, named=["Make hair thick"])


def test_preset_has_its_published_grid_unless_a_sweep_is_given(tmp_path: Path) -> None:
    benchmark = small_bench(tmp_path / "bench", 1)
    editor = Brightener(adjustable=frozenset({"guidance", "image_guidance"}))

    def planned(wanted: ArmRequest) -> Arm:
        (arm,) = [one.arm for one in planned_arms(benchmark, wanted, lambda _: editor, None)][4:]
        return arm

    published = ArmRequest(presets=("instruct-pix2pix",), seeds=2)
    arm = planned(published)
    assert arm.label == "diffusers/medebench-instruct-pix2pix"
    assert [tuple(point.parameters.values()) for point in arm.grid[:6]] == [
        (image, text) for image in (1.55, 1.6, 1.65) for text in (7.5, 7.6)
    ]
    assert len(arm.grid) == 12
    assert parse_sweep(["guidance=5", "guidance=7,5"]) == {"guidance": (5.0, 7.0)}
    swept = planned(replace(published, sweep=parse_sweep(["guidance=3"])))
    assert [dict(point.parameters) for point in swept.grid] == [{"guidance": 3.0}] * 2
    # Named as an editor, its own settings are run once.
    assert len(planned(ArmRequest(editors=published.names)).grid) == 1
    local = planned(ArmRequest(presets=("instruct-pix2pix@/w",)))
    assert (local.model, len(local.grid)) == ("diffusers/medebench-instruct-pix2pix@/w", 6)
