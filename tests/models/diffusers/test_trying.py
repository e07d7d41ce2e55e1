"""`models try`: weights are loaded from a folder in a process of their own, and one edit is timed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from plantain.cli import main
from plantain.models.diffusers.jobs import Steering
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.settings import Settings
from plantain.models.diffusers.trial import run_trial
from plantain.models.diffusers.trying import open_editor_named, try_editor
from plantain.models.framed import FramedRequest
from plantain.pixels.decode import decode
from plantain.records import InputError, Outcome
from plantain.sources.samples import fundus_file

SMALL = Settings(device="cpu", side=64)


@pytest.fixture(scope="session")
def tiny_pix2pix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from fakes.tiny.saving import save_tiny

    folder = tmp_path_factory.mktemp("made") / "pix2pix"
    save_tiny("instruct-pix2pix", folder)
    (folder / "README.md").write_text("---\nlicense: cc0-1.0\n---\n", encoding="utf-8")
    return folder


def test_a_trial_counts_steps_and_times_all_but_the_first(tiny_pix2pix: Path) -> None:
    """Two steps have one interval; its pipeline keeps no trace of having been timed."""
    plan = plan_editor(f"diffusers/{tiny_pix2pix}", SMALL)
    framed = FramedRequest(
        fundus_file().read_bytes(),
        plan.method.frame.frame(1411, 1411, 64),
        "Remove the optic disc",
        0,
    )
    two = run_trial(plan.loading, Steering(steps=2), framed, "cpu")
    one = run_trial(plan.loading, Steering(steps=1), framed, "cpu")
    assert (two.steps, one.steps, one.step_s) == (2, 1, None)
    assert two.step_s is not None
    assert 0 < two.step_s < two.edit_s
    assert two.memory_gb > 0
    assert isinstance(two.edited.result, bytes)
    assert decode(two.edited.result).shape == (1411, 1411, 3)
    lost = run_trial(plan.loading, Steering(steps=1), framed, "cuda:7")
    assert isinstance(lost.edited.result, Outcome) and lost.edited.result.fatal
    assert "could not be loaded onto cuda:7" in lost.edited.result.reason


@pytest.mark.slow
def test_try_says_what_an_edit_took(
    tiny_pix2pix: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command, with its own process: slow because that imports torch, and diffusers beside torchao, which speaks
    unasked (`models/diffusers/quiet.py`)."""
    pytest.importorskip("torchao")
    settings = tmp_path / "small.toml"
    settings.write_text("[providers.diffusers]\nside = 64\n")
    name = f"medebench-instruct-pix2pix@{tiny_pix2pix}"
    options = ["--settings", str(settings), "--device", "cpu", "--to", str(tmp_path / "edit.png")]
    assert main(["models", "try", name, *options, "--json"]) == 0
    printed = capfd.readouterr()
    assert printed.err == ""
    told = json.loads(printed.out)
    assert (told["ok"], told["licence"], told["missing"]) == (True, "cc0-1.0", "")
    assert (told["canvas"], told["precision"], told["steps"]) == ([64, 64], "float32", 2)
    assert told["usual_steps"] == 50  # the paper's
    assert told["usual_s"] == pytest.approx(told["edit_s"] + 48 * told["step_s"], abs=0.1)
    assert decode((tmp_path / "edit.png").read_bytes()).shape == (1411, 1411, 3)


def test_what_is_missing_is_said_with_all_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert main(["models", "try", "flux2-klein-4b", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["licence"], told["disk_gb"]) == (False, "apache-2.0", 16)
    assert "allow_downloads = true" in told["missing"]
    assert main(["models", "try", "medebench-icedit"]) == 1
    printed = capsys.readouterr().out
    assert "flux-1-dev-non-commercial-license" in printed
    assert "missing" in printed


def test_a_part_that_is_missing_is_named(tiny_pix2pix: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(tiny_pix2pix, folder)
    next((folder / "unet").glob("*.safetensors")).unlink()
    tried = try_editor(str(folder), SMALL, 1)
    assert "unet/*.safetensors is missing" in tried.missing
    assert tried.trial is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["try", "gemini/gemini-3.8-flash"], "--probe"),
        (["try", "flux1-kontex"], "did you mean 'diffusers/flux1-kontext'"),
        (["try", "flux1-kontext@/nowhere"], "no such folder"),
        (["--json", "try", "flux1-kontext"], "go after its name"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept.txt").write_text("x")
    assert main(["models", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.txt"]


def test_names_of_open_editors_may_leave_out_their_provider() -> None:
    assert open_editor_named("flux1-kontext") == "diffusers/flux1-kontext"
    assert open_editor_named("diffusers//data/x") == "diffusers//data/x"
    assert open_editor_named("black-forest-labs/FLUX.2-klein-4B").startswith("diffusers/black")
    with pytest.raises(InputError):
        open_editor_named("process/brushnet")
