"""Arms: labels, seeds, growth, and how they are kept."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from bench.small_bench import Brightener, small_bench
from plantain.bench.generate.arms import (
    Arm,
    ArmKind,
    GridPoint,
    PromptVariant,
    arm_label,
    grid_of,
    grown,
    output_seed,
    parse_sweep,
)
from plantain.bench.generate.requests import ArmRequest, found_preset, parse_editors, planned_arms
from plantain.records import InputError

NAMES = st.text("abc", min_size=1, max_size=4)
POINTS = st.builds(GridPoint, st.integers(0, 9), st.dictionaries(NAMES, st.floats(-9, 9), max_size=2))


@given(
    st.builds(
        Arm,
        label=NAMES,
        model=NAMES,
        kind=st.sampled_from(ArmKind),
        prompt=st.sampled_from(PromptVariant),
        words=NAMES,
        grid=st.lists(POINTS, min_size=1, max_size=4).map(tuple),
        shots=st.none() | st.integers(0, 3),
        samples=st.none() | st.lists(NAMES).map(tuple),
        demonstrations=st.dictionaries(NAMES, st.lists(NAMES).map(tuple), max_size=2),
        region=st.booleans(),
        fingerprint=NAMES,
        rule=st.sampled_from(("first", "mean")),
    )
)
def test_arm_survives_the_journal(arm: Arm) -> None:
    """As a run's meta stores it: what a damaged entry says is tested in test_generate.py."""
    text = orjson.dumps([asdict(arm)])
    assert TypeAdapter(list[Arm]).validate_json(text, strict=True) == [arm]


def test_more_seeds_and_values_follow_behind_what_exists() -> None:
    before = Arm("m", "m", grid=grid_of(1, {"guidance": (7.5, 7.6)}))
    seeds = grown(before, replace(before, grid=grid_of(2, {"guidance": (7.5, 7.6)})))
    points = [(p.seed, p.parameters["guidance"]) for p in seeds.grid]
    assert points == [(0, 7.5), (0, 7.6), (1, 7.5), (1, 7.6)]
    values = grown(seeds, replace(before, grid=grid_of(1, {"guidance": (7.4, 7.5)})))
    assert values.grid == (*seeds.grid, GridPoint(0, {"guidance": 7.4}))
    assert grown(values, replace(before, grid=grid_of(1, {}))).grid[-1] == GridPoint()
    arm = Arm("m", "gemini/a")
    with pytest.raises(InputError, match="model is now 'gemini/b', but this run has it with 'gemini/a'"):
        grown(arm, replace(arm, model="gemini/b"))
    with pytest.raises(InputError, match="rule is now 'mean'"):
        grown(arm, replace(arm, rule="mean"))


def test_seed_depends_on_run_sample_and_index() -> None:
    assert output_seed(1, "38", 0) == output_seed(1, "38", 0)
    seeds = {output_seed(run, sample, k) for run in (1, 2) for sample in ("38", "39") for k in (0, 1)}
    assert len(seeds) == 8
    assert arm_label("gemini/m", PromptVariant.DETAILED, 2) == "gemini/m+detailed+2shot"
    assert Arm("diffusers/a/b", "diffusers/a/b").folder == "diffusers__a__b"


def test_sweep_is_read_and_multiplied_seeds_outermost() -> None:
    sweep = parse_sweep(["image_guidance=1.55,1.6,1.65", "guidance=7.5,7.6"])
    grid = grid_of(2, sweep)
    assert len(grid) == 12  # 2 seeds x 3 x 2, the published grid for each seed
    assert grid[1] == GridPoint(0, {"image_guidance": 1.55, "guidance": 7.6})
    assert grid[6] == GridPoint(1, {"image_guidance": 1.55, "guidance": 7.5})
    assert grid_of(1, {}) == (GridPoint(),)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["guidance"], "'guidance' is not like guidance=7.5,7.6"),
        (["guidance=a"], "'a' in 'guidance=a' is no number"),
        (["guidance=1,,2"], "'' in 'guidance=1,,2' is no number"),
        (["guidance=1,1.0"], "has a value twice"),
        (["guidance=1", "guidance=2"], "guidance is given twice"),
    ],
)
def test_bad_sweep_is_one_clear_line(given: list[str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_sweep(given)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(InputError, match="20000 outputs for each sample; at most 10000"):
        grid_of(100, {"a": tuple(map(float, range(200)))})


def test_editor_can_be_called_otherwise() -> None:
    editors, labels = parse_editors(["diffusers//home/me/v3=Ours", "gemini/m", "diffusers/a=b/c"])
    assert editors == ("diffusers//home/me/v3", "gemini/m", "diffusers/a=b/c")
    assert labels == {"diffusers//home/me/v3": "Ours"}
    with pytest.raises(InputError, match="called both 'A' and 'B'"):
        parse_editors(["gemini/m=A", "gemini/m=B"])
    with pytest.raises(InputError, match="letters, digits"):
        parse_editors(["gemini/m=<b>"])


def test_preset_brings_its_published_grid_unless_another_is_swept(tmp_path: Path) -> None:
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
    swept = planned(replace(published, sweep={"guidance": (3.0,)}))
    assert [dict(point.parameters) for point in swept.grid] == [{"guidance": 3.0}] * 2
    # Named as an editor, its own settings are run once.
    assert len(planned(ArmRequest(editors=published.names)).grid) == 1
    local = planned(ArmRequest(presets=("instruct-pix2pix@/w",)))
    assert (local.model, len(local.grid)) == ("diffusers/medebench-instruct-pix2pix@/w", 6)


def test_presets_are_found_by_their_short_names() -> None:
    assert found_preset("instruct-pix2pix").name == "diffusers/medebench-instruct-pix2pix"
    assert found_preset("gemini/medebench-gemini").prompt.startswith("You are good at image editing.")
    with pytest.raises(InputError, match="--preset: no preset 'instruct-pix3pix'; did you mean"):
        found_preset("instruct-pix3pix")
