"""A command of the user's that is called when a run stops, or waits for long: nobody watches a run at night."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from plantain.files.secrets import environment_without_keys
from plantain.records import InputError


class Alarm:
    """Calls the command, without a shell, and does not wait for it.

    Args:
        command: the program and its arguments, in which `{why}` and `{run}` are filled in; nothing for no alarm.
        run: the run's folder.
        secrets: names of environment variables that it must not see, beside all that bear keys by their name.

    Raises:
        InputError: there is no such program.
    """

    def __init__(self, command: Sequence[str], run: Path, secrets: Collection[str] = ()) -> None:
        if command and shutil.which(command[0]) is None:
            raise InputError(f"limits.on_stop: there is no program {command[0]!r}")
        self._command = tuple(command)
        self._run = run
        self._secrets = frozenset(secrets)

    def ring(self, why: str) -> None:
        """Says why; a command that fails to start is told on stderr and stops nothing."""
        if not self._command:
            return
        marks = {"{why}": why, "{run}": str(self._run)}
        words = [self._filled(word, marks) for word in self._command]
        environment = {
            name: value for name, value in environment_without_keys().items() if name not in self._secrets
        }
        try:
            subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL if _piped(2) else None,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            print(f"plantain: limits.on_stop could not be called: {error}", file=sys.stderr)

    @staticmethod
    def _filled(word: str, marks: dict[str, str]) -> str:
        for mark, text in marks.items():
            word = word.replace(mark, text)
        return word


def _piped(number: int) -> bool:
    """Whether a file that is open leads into a pipe: who reads there would wait for the command's end, not for ours."""
    try:
        return stat.S_ISFIFO(os.fstat(number).st_mode)
    except OSError:  # closed
        return True
