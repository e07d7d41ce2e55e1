"""Grounded-SAM with tiny random weights of the real classes: three proposals for the task, and clear refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fakes.medebench_tree import sample_image, spot, write_png
from plantain.bench.benchmark.benchmark import Benchmark, proposed_regions
from plantain.cli import main

pytest.importorskip("transformers")

IMAGE = sample_image("chelsea", left=60, top=40, size=(128, 96))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    from fakes.tiny.grounding import save_tiny_detector, save_tiny_segmenter

    folder = tmp_path_factory.mktemp("weights")
    save_tiny_detector(folder / "tiny-dino")
    save_tiny_segmenter(folder / "tiny-sam")
    return str(folder / "tiny-dino"), str(folder / "tiny-sam")


def test_confidences_equal_those_of_the_transformers_pipeline(weights: tuple[str, str]) -> None:
    """Expected confidences: transformers' zero-shot-object-detection pipeline on the same weights and text."""
    from PIL import Image
    from transformers import pipeline

    from plantain.bench.prepare.regions_grounded import GroundedProposer

    detect = pipeline("zero-shot-object-detection", model=weights[0])
    expected = detect(Image.fromarray(IMAGE), candidate_labels=["remove the mole."], threshold=0.0)
    confidences = sorted((one["score"] for one in expected), reverse=True)
    found = [one.score for one in GroundedProposer(*weights).propose(IMAGE, None, "Remove the mole")]
    assert found == sorted(found, reverse=True)
    for score in found:
        assert min(abs(score - one) for one in confidences[:12]) < 1e-4


def grounded(detector: str, segmenter: str) -> list[str]:
    """Return the options of `bench prepare` with these weights."""
    return ["--regions", "grounded-sam", "--detector", detector, "--segmenter", segmenter, "--keep", "text"]


def test_a_benchmark_is_prepared_with_three_proposals_per_sample(
    weights: tuple[str, str], tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    write_png(raw / "before" / "a.png", spot(IMAGE, (60, 50), 10)[0])
    write_png(raw / "after" / "a.png", IMAGE)
    (raw / "pairs.csv").write_text("id,organ,task,key_concept\na,Skin,Remove a mole,the mole\n")
    out = tmp_path / "bench"
    args = grounded(*weights)
    assert main(["bench", "prepare", str(raw), "--to", str(out), *args]) == 0
    listed = json.loads((out / "proposals.json").read_text())
    assert listed["proposer"] == "tiny-dino + tiny-sam", "weights are named without their folder"
    assert [entry["how"] for entry in listed["samples"]["a"]] == ["box for 'Remove a mole'"] * 3
    bench = Benchmark.load(out)
    assert np.array_equal(bench.roi(bench.sample("a")), proposed_regions(out, "a")[0])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--detector", "small", "--detector: 'small' is neither tiny, base nor a folder of weights"),
        (
            "--segmenter",
            "large",
            "--segmenter: the weights of facebook/sam-vit-large are not on this machine",
        ),
    ],
)
def test_unusable_weights_give_one_line(
    weights: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
    message: str,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    args = grounded(*weights)
    args[args.index(option) + 1] = value
    assert main(["bench", "prepare", str(tmp_path / "raw"), "--to", str(tmp_path / "out"), *args]) == 2
    assert message in capsys.readouterr().err
