"""Arms: labels, seeds, growth, and how they are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.small_bench import Brightener, small_bench
from plantain.bench.generate.arms import (
    Arm,
    parse_sweep,
)
from plantain.bench.generate.requests import ArmRequest, parse_editors, planned_arms
from plantain.records import InputError


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
    swept = planned(replace(published, sweep=parse_sweep(["guidance=3"])))
    assert [dict(point.parameters) for point in swept.grid] == [{"guidance": 3.0}] * 2
    # Named as an editor, its own settings are run once.
    assert len(planned(ArmRequest(editors=published.names)).grid) == 1
    local = planned(ArmRequest(presets=("instruct-pix2pix@/w",)))
    assert (local.model, len(local.grid)) == ("diffusers/medebench-instruct-pix2pix@/w", 6)
