"""Checking and describing a benchmark through the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fakes.medebench_tree import sample_image, spot, write_png
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.checking import check_benchmark
from plantain.bench.benchmark.describing import describe_benchmark, properties_figure
from plantain.cli import main


def found(tree: Path, warning: bool) -> list[str]:
    return [str(problem) for problem in check_benchmark(tree).problems if problem.warning is warning]


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    code = main(["bench", *args])
    return code, capsys.readouterr().out


def test_valid_tree_passes_with_warnings(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "check", str(published))
    assert code == 0
    assert out.splitlines()[-2] == "OK: 6 samples from 5 sources, 3 warnings"
    assert "2 samples share one source and count as one in intervals: 3, 4" in out
    assert "6 images have no stated licence" in out
    assert "example.org" not in out


def test_every_problem_is_one_line_and_the_exit_code_is_1(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "previous" / "1.png").write_bytes((tree / "previous" / "1.png").read_bytes()[:900])
    (tree / "changed" / "2.png").write_bytes(b"no image")
    (tree / "previous_mask" / "3.png").unlink()
    write_png(tree / "previous_mask" / "4.png", np.zeros((120, 160), np.uint8))
    shutil.copy(tree / "previous" / "5.png", tree / "changed" / "5.png")
    code, out = run(capsys, "check", str(tree))
    assert code == 1
    problems = [line for line in out.splitlines() if not line.startswith("warning")]
    assert problems == [
        "changed/2.png: sample 2: changed: not an image that we read; JPEG, PNG, TIFF, BMP, WebP and GIF are",
        "editing/previous_mask/3.png: sample 3: samples[2].roi: no such file",
        "previous/1.png: sample 1: previous: damaged (its pixels do not have the checksum that the file states)",
        "previous_mask/4.png: sample 4: pixels: mask: it marks nothing",
        "changed/5.png: sample 5: pixels: the image after equals the image before",
        "NOT OK: 5 problems; 4 samples could be read",
    ]


def test_json_names_files_and_fields(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "previous" / "6.png").unlink()
    code, out = run(capsys, "check", str(tree), "--json")
    data = json.loads(out)
    assert (code, data["ok"]) == (1, False)
    (problem,) = data["problems"]
    assert list(problem.values()) == ["editing/previous/6.png", "6", "samples[5].previous", "no such file"]
    assert {"file", "sample", "field", "detail"} == set(data["warnings"][0]) == set(problem)


def test_unaligned_pixels_give_a_warning(tree: Path) -> None:
    write_png(tree / "changed" / "1.png", np.roll(sample_image("chelsea", left=90, top=60), 9, axis=1))
    unaligned = [line for line in found(tree, warning=True) if "not aligned pixel by pixel" in line]
    assert unaligned[0].startswith("changed/1.png: sample 1: pixels")


def test_describe_writes_figures_and_names_unscored_values(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "to"
    code, out = run(capsys, "describe", str(published), "--to", str(to), "--json", "--clip", "nobody/weights")
    data = json.loads(out)
    assert code == 0
    assert data["samples"] == 6
    assert data["clusters"] == 5
    expected = {"Skin": 2, "Spine and Bones": 2, "Teeth": 2}
    assert {row["organ"]: row["samples"] for row in data["organs"]} == expected
    assert data["directions"] == {"add": 1, "change": 1, "remove": 4}
    # A disc of radius 14 and a square of 9 around each of its points: a share of the 160 x 120 frame.
    share = float(spot(sample_image("chelsea"), (52, 60), 14)[1].mean())
    assert data["roi_share"]["median"] == pytest.approx(share)
    assert data["prompt_image_similarity"]["unscored"] != ""
    assert data["prompt_image_similarity"]["spread"] is None
    first = {path.name: path.read_bytes() for path in to.iterdir()}
    assert sorted(first) == ["description.json", "figure-3.svg", "figure-4.svg"]
    assert data["tasks"][0] == {"organ": "Teeth", "task": "Add or remove braces", "samples": 2, "clusters": 1}
    run(capsys, "describe", str(published), "--to", str(to), "--clip", "nobody/weights")
    assert {path.name: path.read_bytes() for path in to.iterdir()} == first, "the same bytes again"


def test_paper_figures_are_listed_with_missing_data(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(capsys, "describe", str(published), "--paper", "--clip", "nobody/weights")
    assert code == 0
    assert out.startswith("Figure 3: 6 samples of 3 organs\n  missing: no samples of Eyes, Nose, Face,")
    assert "Figure 4: similarity of 0, region of 6 samples\n  missing: similarity: " in out
    assert "Figure 5: not drawn\n  missing: a benchmark has no scores: bench table --to draws it" in out


def test_similarity_of_prompt_and_image_is_their_cosine(published: Path) -> None:
    """In closed form: images are on the first axis, texts at 60 degrees from it."""

    class Plane:
        name = "plane"

        def images(self, images: Sequence[np.ndarray]) -> np.ndarray:
            return np.array([[float(image.mean()), 0.0] for image in images], np.float32)

        def texts(self, texts: Sequence[str]) -> np.ndarray:
            return np.array([[0.5, 3**0.5 / 2] for _ in texts], np.float32)

        def truncated(self, text: str) -> bool:
            return False

    description = describe_benchmark(Benchmark.load(published), Plane())
    assert list(description.similarity.values()) == pytest.approx([0.5] * 6)
    assert description.similarity_name == "clip_talign:plane", "other weights never report under CLIP's name"
    assert "median 0.500, n = 6" in properties_figure(description)


def test_missing_benchmark_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "check", str(tmp_path)]) == 2
    assert "neither benchmark.json nor" in capsys.readouterr().err
