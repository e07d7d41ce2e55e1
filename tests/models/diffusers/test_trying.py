"""`models try`: weights are loaded from a folder in a process of their own, and one edit is timed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plantain.cli import main
from plantain.pixels.decode import decode


@pytest.mark.slow
def test_try_says_what_an_edit_took(
    tiny_folder: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command, with its own process: slow because that imports torch, and diffusers beside torchao, which speaks
    unasked (`models/diffusers/quiet.py`)."""
    pytest.importorskip("torchao")
    settings = tmp_path / "small.toml"
    settings.write_text("[providers.diffusers]\nside = 64\n")
    weights = shutil.copytree(tiny_folder("instruct-pix2pix"), tmp_path / "pix2pix")
    (weights / "README.md").write_text("---\nlicense: cc0-1.0\n---\n", encoding="utf-8")
    name = f"medebench-instruct-pix2pix@{weights}"
    options = ["--settings", str(settings), "--device", "cpu", "--to", str(tmp_path / "edit.png")]
    capfd.readouterr()  # what making the weights wrote
    assert main(["models", "try", name, *options, "--json"]) == 0
    printed = capfd.readouterr()
    assert printed.err == ""
    told = json.loads(printed.out)
    assert (told["ok"], told["licence"], told["missing"]) == (True, "cc0-1.0", "")
    assert (told["canvas"], told["precision"], told["steps"]) == ([64, 64], "float32", 2)
    assert told["usual_steps"] == 50  # the paper's
    assert told["usual_s"] == pytest.approx(told["edit_s"] + 48 * told["step_s"], abs=0.1)
    assert decode((tmp_path / "edit.png").read_bytes()).shape == (1411, 1411, 3)
