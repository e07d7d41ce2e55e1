"""The commands around a run, through the real command line and the real offline models."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
from pathlib import Path

import pytest
import skimage.data
from PIL import Image

from fakes.commands import plantain, refused
from plantain.cli import main

RECIPE = """
name = "pilot"
seed = 3
[data]
catalogue = "catalogue"
findings = ["AMD", "Cataract"]
check_text = false
[loop]
max_rounds = 2
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two real photographs, ingested, and a recipe in the same folder."""
    folder = tmp_path_factory.mktemp("project")
    normal = folder / "images" / "normal"
    normal.mkdir(parents=True)
    retina = Image.fromarray(skimage.data.retina())
    retina.save(normal / "0_left.png")
    retina.resize((900, 900)).save(normal / "正常.jpg")
    kind = ("--modality", "fundus", "--licence", "open", "--to", folder / "catalogue", "--skip-text")
    done = plantain("ingest", "folder", folder / "images", *kind)
    assert done.returncode == 0, done.stderr
    (folder / "pilot.toml").write_text(RECIPE)
    return folder


def test_plan_counts_and_states_disk(project: Path) -> None:
    plan = json.loads(plantain("plan", project / "pilot.toml", "--json").stdout)
    assert (plan["tasks"], plan["images"]) == (4, 2)  # two images, two findings to add, none to remove
    # three calls a round, two rounds at most
    assert plan["calls"] == {"low": 12.0, "expected": 24.0, "high": 24.0}
    assert 0 < plan["disk_bytes"]["low"] < plan["disk_bytes"]["high"] < plan["disk_free_bytes"]


@pytest.mark.slow
def test_build_stops_at_its_limit_resumes_and_reports(project: Path) -> None:
    """In a folder with spaces and umlauts; the advised command can be pasted."""
    run = project / "Läufe 2026" / "erster Lauf"
    first = plantain("build", project / "pilot.toml", "--run", run, "--limit", 1)
    assert first.returncode == 3, first.stderr
    words = shlex.split(first.stderr.rpartition("resume with: ")[2])
    assert words == ["plantain", "build", str(project / "pilot.toml"), "--run", str(run)]
    assert first.stdout.startswith("4 tasks: ") and "3 pending" in first.stdout.splitlines()[0]
    assert "plantain report" not in first.stdout  # not yet
    pilot = plantain("build", project / "pilot.toml", "--run", run, "--pilot", 2)
    end = f"stop\nnext: {shlex.join(words)} --pilot 20\n"  # fewer than 10 tasks decide nothing
    assert pilot.stdout.endswith(end)
    second = plantain("build", project / "pilot.toml", "--run", run, "--json")
    assert second.returncode == 0, second.stderr
    status = json.loads(plantain("status", run, "--json").stdout)
    assert status["tasks"]["total"] == 4 and status["tasks"]["pending"] == 0
    assert status["modalities"] == ["fundus"]
    again = plantain("build", project / "pilot.toml", "--run", run, "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["calls"]["made"] == status["calls"]["made"]
    whole = plantain("build", project / "pilot.toml", "--run", run, "--pilot", 20).stdout
    assert "the recipe has 4 tasks, " in whole and whole.endswith(": raise data.per_finding, or add images\n")
    page = plantain("report", run)
    assert page.returncode == 0 and (run / "report.html").stat().st_size > 50_000
    copy = run.with_name("copy")
    shutil.copytree(run, copy)
    assert plantain("report", copy).returncode == 0
    assert (copy / "report.html").read_bytes() == (run / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["build", "none.toml", "--run", "x"], "none.toml: no such recipe"),
        (["build", "none.toml"], "none.toml: no such recipe"),
        (["build", ".", "--run", "x"], ".: a folder, not a recipe"),
        (["status", "nowhere"], "is not a run"),
        (["bild"], "plantain: no command 'bild'; did you mean 'build'?"),
        (["eval"], "did you mean 'bench score'?"),  # words of other tools
        (["generate", "bench"], "did you mean 'bench generate'?"),
        (["serve"], "did you mean 'review serve'?"),
        (["resume", "runs/x"], "no command 'resume'; did you mean 'build RECIPE --run DIR'?"),
        (["run", "mine.toml"], "did you mean 'plantain build mine.toml'?"),
        (["build"], "RECIPE"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(args: list[str], line: str) -> None:
    assert line in refused(*args)


def test_run_needs_an_empty_folder(project: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for run in (tmp_path, tmp_path / "notes.txt"):
        done = plantain("build", project / "pilot.toml", "--run", run)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_missing_catalogue_blob_gives_one_line(project: Path, tmp_path: Path) -> None:
    shutil.copytree(project / "catalogue", tmp_path / "catalogue")
    for blob in (tmp_path / "catalogue" / "blobs").glob("*/*"):
        blob.unlink()
    (tmp_path / "r.toml").write_text(RECIPE)
    done = plantain("build", tmp_path / "r.toml", "--run", tmp_path / "run")
    assert done.returncode == 1 and "is missing" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command", ["status", "report", "build", "export", "verify", "withdraw", "init", "view"]
)
def test_path_that_is_not_utf8_gives_one_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """POSIX paths are bytes; "café" in Latin-1 is not UTF-8."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    assert main([command, str(folder)]) == 2
    monkeypatch.chdir(folder)
    assert main([command, "run"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all("caf\\udce9: the name is not UTF-8" in line for line in lines)
    assert list(folder.iterdir()) == []


def test_a_crash_writes_no_core_file() -> None:
    """A core file contains the process's memory: keys and images."""
    assert main(["--version"]) == 0
    assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
