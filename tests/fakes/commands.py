"""Commands in this process: the programs that a process starts for itself take longer than the work."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from typing import Any

from plantain.cli import main


def plantain(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command; return its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*map(str, words)])
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def printed(*words: object) -> str:
    """Run a command that succeeds; return what it printed."""
    done = plantain(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def json_of(*words: object) -> Any:
    """Run a command with --json that succeeds; return that."""
    return json.loads(printed(*words, "--json"))


def refused(*words: object) -> str:
    """Run a command that is invalid input: it exits with 2 and says why in one line, which is returned."""
    done = plantain(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    return done.stderr
