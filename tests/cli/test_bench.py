"""`plantain bench`: its sub-commands are listed, found when misspelt, and imported only when asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from plantain.cli import main
from plantain.cli.bench import app


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and text in out for name, text in app.commands.items())
    assert main(["bench"]) == 0
    assert capsys.readouterr().out == out


def test_help_of_the_whole_loads_no_image_library() -> None:
    code = (
        "import sys, plantain.cli; plantain.cli.main(['bench', '--help']); "
        "print('loaded', *(m for m in ('numpy', 'cv2', 'matplotlib', 'torch') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]


def test_every_sub_command_comes_without_the_extras() -> None:
    extras = "httpx2 pyarrow datasets webdataset c2pa rapidocr torch statsmodels sklearn"
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({extras.split()!r}))\n"
        "import importlib; from plantain.cli.bench import app\n"
        "for name in app.commands: assert importlib.import_module('plantain.cli.bench.' + name.replace('-', '_')).app\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["check", "describe", "prepare", "from-build"])
def test_help_of_each_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Usage: plantain bench {name}" in out
    assert f"Example: plantain bench {name}" in " ".join(out.split())
