"""`plantain.evaluate`: an editor's name, an object or a plain function, measured beside the baselines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import plantain
from bench.small_bench import Brightener, small_bench
from plantain.api.evaluating import FunctionEditor
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, Licence


def untouched(image: Pixels, instruction: str) -> Pixels:
    """The image as it was."""
    return image.copy()


def grey(image: Pixels, instruction: str) -> Pixels:
    """One channel where three are wanted."""
    return image[..., 0]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> plantain.Benchmark:
    return small_bench(tmp_path_factory.mktemp("bench") / "bench", 3, licence=Licence.CREDENTIALED)


def test_a_function_is_measured_and_never_asked_again(benchmark: plantain.Benchmark, tmp_path: Path) -> None:
    found = plantain.evaluate(untouched, benchmark, run_dir=tmp_path / "run", metrics=["masked_ssim"])
    means = {row["model"]: row["mean"] for row in found.rows() if row["organ"] == "overall"}
    # an editor that changes nothing is the baseline copy-input: structural similarity outside the region is 1
    assert means["python/untouched"] == means["copy-input"] == pytest.approx(1.0)
    again = plantain.evaluate(untouched, benchmark.root, run_dir=tmp_path / "run", metrics=["masked_ssim"])
    assert (again.generated.made, again.scored.measured) == (0, 0)
    assert set(found.table().columns) >= {"model", "organ", "metric", "mean", "low", "high", "n", "coverage"}


def test_an_object_that_fills_the_role_is_measured(benchmark: plantain.Benchmark, tmp_path: Path) -> None:
    own = Brightener(name="diffusers/mine")
    found = plantain.evaluate(own, benchmark, run_dir=tmp_path / "run", metrics=["psnr"])
    assert "diffusers/mine" in {row["model"] for row in found.rows()}


def test_a_function_that_gives_no_picture_is_unscored_with_its_reason(
    benchmark: plantain.Benchmark, tmp_path: Path
) -> None:
    found = plantain.evaluate(grey, benchmark, run_dir=tmp_path / "run", metrics=["psnr"])
    assert [row for row in found.rows() if row["model"] == "python/grey" and row["mean"] is not None] == []
    reasons = {task.row.reason for task in plantain.Run(found.path).tasks("failed")}
    assert any("python/grey gave ndarray uint8 (96, 120), not" in reason for reason in reasons), reasons


def test_a_function_that_changed_is_another_editor() -> None:
    first, second = (FunctionEditor.of(function) for function in (untouched, grey))
    assert first.fingerprint != second.fingerprint
    assert FunctionEditor.of(untouched) == first
    assert FunctionEditor.of(lambda image, text: image).name == "python/lambda"


@pytest.mark.parametrize(
    ("editor", "said"), [("offline/procedual", "procedural"), ("gemini/x", "credentialed")]
)
def test_what_cannot_be_measured_is_refused(
    benchmark: plantain.Benchmark, tmp_path: Path, editor: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        plantain.evaluate(editor, benchmark, run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_function_sees_uint8_rgb(benchmark: plantain.Benchmark, tmp_path: Path) -> None:
    seen: list[tuple[str, tuple[int, ...], str]] = []

    def look(image: Pixels, instruction: str) -> Pixels:
        seen.append((str(image.dtype), image.shape, instruction))
        return np.zeros_like(image)

    plantain.evaluate(look, benchmark, run_dir=tmp_path / "run", metrics=["psnr"])
    assert {entry[:2] for entry in seen} == {("uint8", (96, 120, 3))}
    assert {entry[2] for entry in seen} == {sample.prompt for sample in benchmark.samples}
