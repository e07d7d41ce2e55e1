"""`plantain bench`: its sub-commands are listed, found when misspelt, and imported only when asked for."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fakes.commands import printed
from plantain.cli.bench import app
from plantain.cli.terminal.progress import StageProgress, time_left


def test_help_lists_every_command() -> None:
    out = printed("bench", "--help")
    assert all(f"  {name} " in out and text in out for name, text in app.commands.items())
    assert printed("bench") == out


def test_help_of_the_whole_loads_no_image_library() -> None:
    code = (
        "import sys, plantain.cli; plantain.cli.main(['bench', '--help']); "
        "print('loaded', *(m for m in ('numpy', 'cv2', 'matplotlib', 'torch') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]


@pytest.mark.parametrize("name", ["check", "describe", "prepare", "from-build"])
def test_help_of_each_has_an_example(name: str) -> None:
    out = printed("bench", name, "--help")
    assert f"Usage: plantain bench {name}" in out
    assert f"Example: plantain bench {name}" in " ".join(out.split())


def test_plain_lines_tell_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("plantain.cli.terminal.progress.PLAIN_EVERY_S", 0.0)
    with StageProgress() as progress:
        progress.stage_started("metrics", 3)
        progress.advanced(0)  # an earlier scoring had measured it
        progress.advanced(12)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "plantain: metrics: 1/3 samples"
    assert re.fullmatch(
        r"plantain: metrics: 2/3 samples, \d+(\.\d s each|/s)", second
    )  # too early for an estimate
    # 4 done in 10 s, 32 to come: 80 s; 50 in 10 s, 5 to come: 1 s
    assert time_left(4, 36, 10.0) == "2.5 s each, about 80 s left"
    assert time_left(50, 55, 10.0) == "5/s, about 1 s left"
    # one audited edit of thousands waited for the judge's processes: it says nothing of the rest
    assert time_left(1, 3300, 45.6) == "45.6 s each"
    assert time_left(165, 3300, 330.0) == "2.0 s each, about 1.7 h left"
