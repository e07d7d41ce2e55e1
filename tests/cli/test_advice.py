"""Advice is typed as printed: each line "next: plantain ..." is run, with paths that contain spaces."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from PIL import Image

from fakes.commands import refused
from plantain.cli import main
from plantain.sources.samples import sample_images


def advised(printed: str) -> list[str]:
    found = re.findall(r"(?:next|with|full): plantain (.+)$", printed, re.M)
    return shlex.split(found[-1]) if found else []


def followed(words: list[str]) -> tuple[list[str], list[str]]:
    """Run a command and each advised one, until a view or no advice; return their names and the last words."""
    ran = []
    while words and words[0] != "view":
        with redirect_stdout(StringIO()) as out:
            assert main(words) in (0, None), words
        if words[0] == "build":  # the samples' plane and sequence are not recorded
            change = (
                "nothing was edited: change data.findings or models.editor in pilot.toml; use a new --run"
            )
            assert change in out.getvalue().splitlines()
        ran.append(words[0])
        words = advised(out.getvalue())
    return ran, words


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with five brain images, which is the current folder."""
    folder = tmp_path_factory.mktemp("my place")
    (folder / "my scans" / "notumor").mkdir(parents=True)
    for sample in sample_images():
        if sample.image.modality == "brain_mri":
            Image.fromarray(sample.pixels).save(folder / "my scans" / "notumor" / f"{sample.image.id}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def advised_run(place: Path) -> tuple[list[str], list[str]]:
    ingest = "ingest folder 'my scans' --modality brain_mri --licence open --to 'my catalogue'"
    return followed(shlex.split(ingest))


@pytest.fixture(scope="module")
def run(advised_run: tuple[list[str], list[str]], place: Path) -> str:
    shutil.copytree(advised_run[1][1], place / "my run")
    return "my run"


def test_each_advised_command_runs(advised_run: tuple[list[str], list[str]]) -> None:
    ran, words = advised_run
    assert ran == ["ingest", "init", "plan", "build", "report"]
    assert Path(words[1], "journal.sqlite").is_file()


@pytest.mark.parametrize(
    ("line", "follow"),
    [
        ("status 'my run'", ["status", "report"]),
        ("show 'my run'", ["show", "show"]),
        ("export 'my run' --to 'my release' --licence CC-BY-4.0", ["export", "verify"]),
        ("judge audit 'my run' --judge offline/instruments --pairs 1 --kinds identical", ["judge", "report"]),
        ("run retry 'my run' --state not_applicable --dry-run", ["run", "run", "build", "report"]),
    ],
)
def test_each_command_advised_for_a_run_runs(line: str, follow: list[str], run: str) -> None:
    ran, last = followed(shlex.split(line))
    assert ran == follow
    assert not last or Path(last[1]).is_dir()


def test_printed_line_resumes_a_stopped_build(
    run: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["build", "pilot.toml", "--run", "my stopped run", "--engine", "local", "--limit", "1"]
    assert main(words) == 3
    again = advised(capsys.readouterr().err)
    assert again == words[:-2]  # as typed, without the limit
    line = f"resume with: {shlex.join(['plantain', *again])}\n"
    for command in ("status", "report"):  # the run has recorded it
        assert main([command, "my stopped run"]) == 0
        assert line in capsys.readouterr().out
    with monkeypatch.context() as elsewhere:
        elsewhere.chdir(place.parent)
        assert main(["status", f"{place.name}/my stopped run"]) == 0
    folder, moved = (
        shlex.quote(str(place)),
        [str(place / word) if word == words[3] else word for word in again],
    )
    line = f"resume with: cd {folder} && {shlex.join(['plantain', *moved])}\n"
    assert line in capsys.readouterr().out
    assert main(again) == 0
    assert main(["report", words[3]]) == 0
    assert "resume with" not in capsys.readouterr().out
    assert main(["export", words[3], "--to", "my other release", "--licence", "CC-BY-4.0"]) == 0
    pages = [place / words[3] / name for name in ("report.html", "report.json")]
    # only the terminal shows a user's folders
    for path in (*pages, *(place / "my other release").rglob("*")):
        assert path.is_dir() or str(place).encode() not in path.read_bytes(), path


def test_recipe_names_the_commands_that_use_it(run: str, place: Path) -> None:
    text = (place / "pilot.toml").read_text(encoding="utf-8")
    plan, build = map(shlex.split, re.findall(r"^# .*: plantain (.+)$", text, re.M))
    assert (plan, build) == (["plan", "pilot.toml"], ["build", "pilot.toml", "--run", "runs/pilot"])
    assert main(plan) in (0, None)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("plan 'my pilots.toml'", "did you mean 'my pilot.toml'?"),
        ("build 'my pilot.toml'", "e.g. plantain build 'my pilot.toml' --run DIR"),
        (
            "bench generate b",
            "bench generate: Missing option '--run'; e.g. plantain bench generate b --run DIR",
        ),
        ("export 'my run' --keep-unaligned", "; options: plantain export --help"),
        ("bench prepare b --concepts c.csv --to d", "--to d: --concepts and --study change RAW itself"),
        ("ingest 'my scans'", "e.g. plantain ingest folder 'my scans' --modality MODALITY --to catalogue"),
        ("init 'my scanz'", "did you mean 'my scans'?"),
        ("report", "e.g. plantain report DIR"),
        ("view runs", "did you mean 'runs/my pilot'?"),
    ],
)
def test_wrong_line_gets_the_right_one_as_advice(
    typed: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my scans").mkdir()
    (tmp_path / "runs" / "my pilot").mkdir(parents=True)
    (tmp_path / "my pilot.toml").touch()
    (tmp_path / "runs" / "my pilot" / "journal.sqlite").touch()
    assert line in refused(*shlex.split(typed))
