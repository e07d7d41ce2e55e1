"""Commands in this process: the programs that a process starts for itself take longer than the work."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from typing import Any

from plantain.cli import main


def plantain(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command; return its exit code and output."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*map(str, words)])
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def printed(*words: object) -> str:
    """Run a command that succeeds; return its output."""
    done = plantain(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def json_of(*words: object) -> Any:
    """Run a command with --json that succeeds; return that."""
    return json.loads(printed(*words, "--json"))


def refused(*words: object) -> str:
    """Run a command that is invalid input: return the one line that gives the reason for exit code 2."""
    done = plantain(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    return done.stderr
