"""Completion as bash asks for it, by the script that the command prints."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.commands import printed, refused
from plantain.cli import COMMANDS, JOBS

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


def test_every_command_stands_under_one_job() -> None:
    named = " ".join(JOBS.values()).split()
    assert sorted(named) == sorted(COMMANDS)


def test_help_groups_commands_by_job() -> None:
    out = printed("--help")
    places = [out.index(f"{title}:") for title in JOBS]
    assert places == sorted(places)
    assert all(f"\n  {name} " in out for name in COMMANDS)


def test_an_unknown_shell_is_one_line() -> None:
    assert "tcsh" in refused("completion", "tcsh")


def test_the_top_level_is_the_one_of_the_design() -> None:
    """The names are those of the table of commands in the project's design, in its order."""
    design = "demo ingest init plan build status report view show export import verify bench judge review run models"
    assert list(COMMANDS) == [*design.split(), "findings", "train", "completion"]
