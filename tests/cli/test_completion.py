"""Completion as bash asks for it, by the script that the command prints; the help of each command, and its progress."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.progress import Progress

from fakes.commands import printed, refused
from plantain.cli import COMMANDS, JOBS
from plantain.cli.bench import app
from plantain.cli.terminal.progress import StageProgress, TimeLeft, time_left

BASH = shutil.which("bash")

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
$(complete -p plantain | sed 's/.*-F \\([^ ]*\\) .*/\\1/') plantain
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = subprocess.run(
        [sys.executable, "-m", "plantain", "completion", "bash"], capture_output=True, text=True, check=True
    )
    file = tmp_path_factory.mktemp("completion") / "plantain.bash"
    file.write_text(made.stdout, encoding="utf-8")
    return file


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["bu"], {"build"}),
        (["bench", "ra"], {"rank"}),
        (["re"], {"report", "review"}),
        (["run", "re"], {"retry"}),
        (["build", "--sh"], {"--shard"}),
        (["nonsense", ""], {""}),
    ],
)
def test_bash_completes(script: Path, tmp_path: Path, words: list[str], expected: set[str]) -> None:
    program = tmp_path / "plantain"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m plantain "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    assert BASH is not None
    answer = subprocess.run(
        [BASH, "--norc", "-c", ASK, "bash", str(script), "plantain", *words],
        capture_output=True,
        text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        cwd=tmp_path,
        check=True,
    )
    assert set(answer.stdout.rstrip("\n").split("\n")) == expected
    assert answer.stderr == ""


def test_help_lists_every_command_under_one_job() -> None:
    assert sorted(" ".join(JOBS.values()).split()) == sorted(COMMANDS)
    out = printed("--help")
    places = [out.index(f"{title}:") for title in JOBS]
    assert places == sorted(places)
    assert all(f"\n  {name} " in out for name in COMMANDS)


def test_unknown_shell_gives_one_line() -> None:
    assert "tcsh" in refused("completion", "tcsh")


def test_help_lists_every_command() -> None:
    out = printed("bench", "--help")
    assert all(f"  {name} " in out and text in out for name, text in app.commands.items())
    assert printed("bench") == out


def test_general_help_loads_no_image_library() -> None:
    code = (
        "import sys, plantain.cli; plantain.cli.main(['bench', '--help']); "
        "print('loaded', *(m for m in ('numpy', 'cv2', 'matplotlib', 'torch') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]


@pytest.mark.parametrize("name", ["check", "describe", "prepare", "from-build"])
def test_help_of_each_command_has_an_example(name: str) -> None:
    out = printed("bench", name, "--help")
    assert f"Usage: plantain bench {name}" in out
    assert f"Example: plantain bench {name}" in " ".join(out.split())


def test_plain_lines_contain_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("plantain.cli.terminal.progress.PLAIN_EVERY_S", 0.0)
    with StageProgress() as progress:
        progress.stage_started("metrics", 3)
        progress.advanced(0)  # stored by an earlier scoring
        progress.advanced(12)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "plantain: metrics: 1/3 samples"
    # too early for an estimate
    assert re.fullmatch(r"plantain: metrics: 2/3 samples, \d+(\.\d s each|/s)", second)
    # 4 done in 10 s, 32 to come: 80 s; 50 in 10 s, 5 to come: 1 s
    assert time_left(4, 36, 10.0) == "2.5 s each, about 80 s left"
    assert time_left(50, 55, 10.0) == "5/s, about 1 s left"
    # one audited edit of thousands waited for the judge's processes: its time predicts nothing
    assert time_left(1, 3300, 45.6) == "45.6 s each"
    assert time_left(165, 3300, 330.0) == "2.0 s each, about 1.7 h left"
    bar = Progress(TimeLeft())
    bar.add_task("", total=3300, completed=1)
    assert re.fullmatch(r"\d+(\.\d s each|/s)", TimeLeft().render(bar.tasks[0]).plain)
