"""Advice is typed as printed: each line "next: plantain ..." is run, with paths that contain spaces."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

from plantain.cli import main
from plantain.sources.samples import sample_images


def advised(printed: str) -> list[str]:
    found = re.findall(r"(?:next|images|with): plantain (.+)$", printed, re.M)
    return shlex.split(found[-1]) if found else []


def test_each_advised_command_runs_until_the_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my scans" / "notumor").mkdir(parents=True)
    for sample in sample_images():
        if sample.image.modality == "brain_mri":
            Image.fromarray(sample.pixels).save(tmp_path / "my scans" / "notumor" / f"{sample.image.id}.png")
    words = shlex.split("ingest folder 'my scans' --modality brain_mri --licence open --to 'my catalogue'")
    ran = []
    while words[0] != "view":
        assert main(words) in (0, None), words
        ran.append(words[0])
        words = advised(capsys.readouterr().out)
    assert ran == ["ingest", "init", "plan", "build", "report"]
    assert Path(words[1], "journal.sqlite").is_file()


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("plan 'my pilots.toml'", "did you mean 'my pilot.toml'?"),
        ("build 'my pilot.toml'", "e.g. plantain build 'my pilot.toml' --run DIR"),
        (
            "bench generate b",
            "bench generate: Missing option '--run'; e.g. plantain bench generate b --run DIR",
        ),
        ("run 'my scans'", "plantain build RECIPE --run 'my scans'"),
        ("ingest 'my scans'", "e.g. plantain ingest folder 'my scans' --modality MODALITY --to catalogue"),
        ("init 'my scanz'", "did you mean 'my scans'?"),
    ],
)
def test_a_wrong_line_is_answered_with_the_right_one(
    typed: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my scans").mkdir()
    (tmp_path / "my pilot.toml").touch()
    assert main(shlex.split(typed)) == 2
    assert line in capsys.readouterr().err
