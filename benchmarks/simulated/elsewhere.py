"""Another machine, as far as one machine can be two: a folder, an environment and a home of its own, and no network.

The environment has the packages of this one, file by file, and plantain from a wheel that is built of this checkout.
Sockets are refused by an audit hook in every Python process, and by a network namespace of its own where Linux lets us.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

REFUSING = """
import os, sys
def refuse(event, args):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr") or (
        event in ("socket.connect", "socket.sendto") and isinstance(args[1], tuple)
    ):
        with open(os.environ["ELSEWHERE_ASKED"], "a") as asked:
            asked.write(f"{event} {args[1:]}\\n")
        raise OSError(f"{event}: this machine has no network")
sys.addaudithook(refuse)
"""


@dataclass(frozen=True)
class Elsewhere:
    """A machine with nothing of this one but the interpreter.

    Attributes:
        home: its folder; commands run in `home / "work"`.
        settings: of its environment, such as TZ.
    """

    home: Path
    settings: Mapping[str, str]

    @property
    def work(self) -> Path:
        return self.home / "work"

    @property
    def python(self) -> Path:
        return self.home / "environment" / "bin" / "python"

    @property
    def asked(self) -> list[str]:
        """Each time that something asked for the network."""
        path = self.home / "asked.txt"
        return path.read_text().splitlines() if path.exists() else []

    def make(self) -> None:
        """Makes the environment: linked in about 10 seconds, with hardly any disk."""
        self.work.mkdir(parents=True)
        venv.create(self.home / "environment", symlinks=True)
        packages = Path(self._said("import sysconfig; print(sysconfig.get_path('purelib'))"))
        shutil.rmtree(packages)
        theirs = Path(sysconfig.get_path("purelib"))
        shutil.copytree(theirs, packages, copy_function=_linked, ignore=_not_ours)
        wheels = self.home / "wheel"
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)],
            cwd=REPOSITORY,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
            wheel.extractall(packages)
        (packages / "refusing_sockets.py").write_text(REFUSING)
        (packages / "refusing_sockets.pth").write_text("import refusing_sockets\n")

    def python_code(self, code: str, *words: str) -> str:
        """What a piece of Python prints there."""
        return self._run([str(self.python), "-c", code, *words])

    def plantain(self, *words: str) -> str:
        """What one of our commands prints there; SystemExit with its last words where it fails."""
        return self._run([str(self.python), "-m", "plantain", *words])

    def refuses(self) -> bool:
        """Whether it has no network: a connection is tried."""
        code = "import socket\ntry: socket.create_connection(('127.0.0.1', 9))\nexcept OSError as e: print(e)"
        tried = self.python_code(code)
        (self.home / "asked.txt").unlink(missing_ok=True)
        return "has no network" in tried

    def _said(self, code: str) -> str:
        return subprocess.run(
            [self.python, "-c", code], check=True, capture_output=True, text=True
        ).stdout.strip()

    def _run(self, command: Sequence[str]) -> str:
        settings = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "HF_HUB_OFFLINE": "1",
            "ELSEWHERE_ASKED": str(self.home / "asked.txt"),
            **self.settings,
        }
        done = subprocess.run(
            [*self._alone, *command], cwd=self.work, env=settings, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(
                f"failed elsewhere: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done.stdout

    @cached_property
    def _alone(self) -> list[str]:
        """What puts a command into a network namespace of its own; nothing where that is not allowed."""
        words = ["unshare", "--map-root-user", "--net"]
        with contextlib.suppress(OSError):
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                return words
        return []


def step(name: str, do: Callable[[], str | None]) -> None:
    """Does it, and prints a line of the table: what, seconds, and what came of it."""
    begun = time.perf_counter()
    told = do()
    print(f"| {name} | {time.perf_counter() - begun:.1f} s | {told or 'done'} |", flush=True)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _not_ours(folder: str, names: list[str]) -> list[str]:
    """What must not come along: plantain itself, and paths that lead back to this checkout."""
    here = Path(folder) == Path(sysconfig.get_path("purelib"))
    return [name for name in names if here and ("plantain" in name or name.endswith(".pth"))]
