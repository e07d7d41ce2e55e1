"""`plantain.evaluate`: an editor's name, an object or a plain function, compared with the baselines."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import plantain
from bench.small_bench import Brightener, small_bench
from plantain.bench.generate.editors import FunctionEditor
from plantain.cli import main
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, Licence


def untouched(image: Pixels, instruction: str) -> Pixels:
    """Return the image unchanged."""
    return image.copy()


def grey(image: Pixels, instruction: str) -> Pixels:
    """Return one channel where three are expected."""
    return image[..., 0]


class Renaming:
    def __init__(self, strength: int) -> None:
        self.power = strength

    def __call__(self, image: Pixels, instruction: str) -> Pixels:
        return image + self.power


class Counting:
    def __init__(self, strength: int, made: int) -> None:
        self._strength, self.calls = strength, made

    __call__ = staticmethod(untouched)


def mirrored(image: Image.Image, instruction: str) -> Image.Image:
    """A PIL image in, a PIL image out."""
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


async def mirrored_later(image: Image.Image, instruction: str) -> Image.Image:
    """The same, awaited."""
    await asyncio.sleep(0)
    return mirrored(image, instruction)


def unannotated(image, instruction):  # type: ignore[no-untyped-def]
    """No annotation: the `images` argument states the type."""
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


async def flipped(image: Pixels, instruction: str) -> Pixels:
    return image[:, ::-1].copy()


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> plantain.Benchmark:
    return small_bench(tmp_path_factory.mktemp("bench") / "bench", 3, licence=Licence.CREDENTIALED)


def test_function_is_measured_once(benchmark: plantain.Benchmark, tmp_path: Path) -> None:
    found = plantain.evaluate(untouched, benchmark, run_dir=tmp_path / "run", metrics=["masked_ssim"])
    means = {row["model"]: row["mean"] for row in found.rows() if row["organ"] == "overall"}
    # an editor that changes nothing is the baseline copy-input: structural similarity outside the region is 1
    assert means["python/untouched"] == means["copy-input"] == pytest.approx(1.0)
    again = plantain.evaluate(untouched, benchmark.root, run_dir=tmp_path / "run", metrics=["masked_ssim"])
    assert (again.generated.made, again.scored.measured) == (0, 0)
    shown = found.table()
    # one row per model
    assert list(shown["model"]) == list(dict.fromkeys(row["model"] for row in found.rows()))
    assert dict(zip(shown["model"], shown["CP (strict)"], strict=True)) == means
    pairs = {(row["model"], row["metric"]): row for row in found.pairs()}
    assert pairs["python/untouched", "CP (strict)"]["difference"] == pytest.approx(0.0)
    assert {row["against"] for row in found.pairs("ground-truth")} == {"ground-truth"}


def test_object_with_the_role_of_an_editor_is_measured(benchmark: plantain.Benchmark, tmp_path: Path) -> None:
    own = Brightener(name="diffusers/mine")
    found = plantain.evaluate(own, benchmark, run_dir=tmp_path / "run", metrics=["psnr"])
    assert "diffusers/mine" in {row["model"] for row in found.rows()}


def test_function_that_returns_no_image_is_unscored_with_a_reason(
    benchmark: plantain.Benchmark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("plantain.runs.progress.FIRST_S", 0.0)
    found = plantain.evaluate(grey, benchmark, run_dir=tmp_path / "run", metrics=["psnr"])
    # 3 samples by four baselines and the function
    assert "plantain: tasks: 1/15\n" in capsys.readouterr().err
    assert [row for row in found.rows() if row["model"] == "python/grey" and row["mean"] is not None] == []
    reasons = {task.row.reason for task in plantain.Run(found.path).tasks("failed")}
    assert any("python/grey gave ndarray uint8 (96, 120), not" in reason for reason in reasons), reasons


def test_changed_function_is_another_editor() -> None:
    first, second = (FunctionEditor.of(function) for function in (untouched, grey))
    assert first.fingerprint != second.fingerprint
    assert FunctionEditor.of(untouched) == first
    assert FunctionEditor.of(lambda image, text: image).name == "python/lambda"
    with pytest.raises(InputError, match="Path is a class; give an object of it"):
        FunctionEditor.of(Path)
    once, never, other = (FunctionEditor.of(Counting(*n)).fingerprint for n in ((1, 1), (1, 0), (2, 0)))
    assert once == never != other
    one, two = (FunctionEditor.of(Renaming(n)).fingerprint for n in (1, 2))  # another name for its setting
    assert one != two

    def darker(share: float):  # type: ignore[no-untyped-def]
        return lambda image, text: image * share

    assert FunctionEditor.of(darker(0.5)).fingerprint != FunctionEditor.of(darker(0.7)).fingerprint
    weak, strong = (FunctionEditor.of(functools.partial(grey, strength=n)) for n in (1, 2))
    assert weak.name == strong.name == "python/grey" and weak.fingerprint != strong.fingerprint


@pytest.mark.parametrize(
    ("editor", "message"), [("offline/procedual", "procedural"), ("gemini/x", "credentialed")]
)
def test_unusable_editor_is_refused(
    benchmark: plantain.Benchmark, tmp_path: Path, editor: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        plantain.evaluate(editor, benchmark, run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("wanted", "message"), [({"metrics": ["psnrr"]}, "psnr"), ({"judges": ["ofline/x"]}, "offline")]
)
def test_unknown_metric_or_judge_is_refused_before_the_editor_is_called(
    benchmark: plantain.Benchmark, tmp_path: Path, wanted: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        plantain.evaluate(untouched, benchmark, run_dir=tmp_path / "run", **wanted)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_a_function_sees_uint8_rgb(benchmark: plantain.Benchmark, tmp_path: Path) -> None:
    seen: list[tuple[str, tuple[int, ...], str]] = []

    def look(image: Pixels, instruction: str) -> Pixels:
        seen.append((str(image.dtype), image.shape, instruction))
        return np.zeros_like(image)

    plantain.evaluate(look, benchmark, run_dir=tmp_path / "run", metrics=["psnr"])
    assert {entry[:2] for entry in seen} == {("uint8", (96, 120, 3))}
    assert {entry[2] for entry in seen} == {sample.prompt for sample in benchmark.samples}


def test_functions_on_pil_images_and_async_functions_are_detected(
    benchmark: plantain.Benchmark, tmp_path: Path
) -> None:
    # All four mirror the image: their outputs are the same pixels, and so are their scores.
    means = []
    for number, (editor, images) in enumerate(
        [(mirrored, None), (mirrored_later, None), (flipped, None), (unannotated, "pil")]
    ):
        found = plantain.evaluate(
            editor, benchmark, run_dir=tmp_path / f"run{number}", metrics=["psnr"], images=images
        )
        rows = [r for r in found.rows() if r["model"].startswith("python/") and r["organ"] == "overall"]
        assert rows[0]["coverage"] == 1.0
        means.append(rows[0]["mean"])
    assert len(set(means)) == 1


def test_function_that_raises_gives_one_line(
    benchmark: plantain.Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plantain.evaluate(unannotated, benchmark, run_dir=tmp_path / "run", metrics=["psnr"])
    (line,) = [text for text in capsys.readouterr().err.splitlines() if "warning" in text]
    assert "3 of 3 outputs have no image" in line and "python/unannotated raised ValueError" in line
    assert "it was given a uint8 array" in line


def test_command_line_accepts_a_function_in_a_file(
    benchmark: plantain.Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from PIL import Image\n\nasync def turn(image: Image.Image, text: str):\n    return image.rotate(180)\n"
    )
    given = ["bench", "generate", str(benchmark.root), "--run", str(tmp_path / "run"), "--json", "--editor"]
    assert main([*given, f"{file}:turn"]) == 0
    assert '"python/turn"' in capsys.readouterr().out
    for wrong, message in (
        (f"{file}:turned", "name a function as FILE.py:NAME"),
        ("none.py:turn", "no file none.py"),
    ):
        assert main([*given, wrong]) == 2
        assert message in capsys.readouterr().err
    file.write_text("import nothing_of_that_name\n")
    assert main([*given, f"{file}:turn"]) == 2
    assert "ModuleNotFoundError" in capsys.readouterr().err
