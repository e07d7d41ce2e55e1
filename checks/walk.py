"""Print which files of plantain run for one hosted task, in the order in which each is first entered.

A build of one task and a `bench score` with a hosted judge run in a process of their own each, against a provider on
loopback. A file counts when one of its functions runs; what only is imported does not. Work in other processes
(pixels, metrics) is not seen.

Run: python checks/walk.py [build|score]
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/plantain"
WALKS = ("build", "score")

RECIPE = """
name = "walk"
[data]
catalogue = "catalogue"
findings = ["Cataract"]
directions = ["add"]
per_finding = 1
[models]
writer = "gemini/gemini-3.8-flash"
editor = "gemini/gemini-3.1-flash-image"
judge = "gemini/gemini-3.8-flash"
[loop]
max_rounds = 1
[providers.gemini]
base_url = "{url}"
"""


class Walk:
    """The files entered so far; `asked` is how many there were when the first request arrived."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.asked: int | None = None
        self._prefix = f"{PACKAGE}/"

    def enter(self, frame: FrameType, event: str, argument: object) -> None:
        """For `sys.setprofile`: bodies of modules and classes are no functions."""
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED:
            path = code.co_filename
            if path not in self.files and path.startswith(self._prefix):
                self.files[path] = None

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow every thread of this process."""
        threading.setprofile(self.enter)
        sys.setprofile(self.enter)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # as the documentation has it

    def request(self) -> None:
        """Note that a request has arrived."""
        self.asked = len(self.files) if self.asked is None else self.asked


def walk(command: str) -> Walk:
    """Follow one command in this process, in a folder of its own."""
    sys.path.insert(0, str(ROOT / "tests"))
    from bench.small_bench import small_bench
    from fakes.gemini_format import gemini_route
    from fakes.server import KEY, Answer, FakeProvider, Request
    from pipeline.quick import quick_catalogue

    followed = Walk()

    def asked(request: Request, good: Answer) -> Answer:
        followed.request()
        return good

    os.environ["GEMINI_API_KEY"] = KEY
    with tempfile.TemporaryDirectory() as folder, FakeProvider([gemini_route], spoil=asked) as provider:
        os.chdir(folder)
        Path("recipe.toml").write_text(RECIPE.format(url=provider.url))
        Path("settings.toml").write_text(f'[providers.gemini]\nbase_url = "{provider.url}"\n')
        if command == "build":
            quick_catalogue(Path("catalogue"), images=1)
            arguments = ["build", "recipe.toml", "--run", "run"]
        else:
            small_bench(Path("bench"), 1)
            _in_another_process("bench", "generate", "bench", "--run", "run")
            arguments = ["bench", "score", "run", "--judge", "gemini/gemini-3.8-flash", "--draws", "1"]
            arguments += ["--settings", "settings.toml"]
        with followed.followed():
            _run(arguments)
        os.chdir(ROOT)
    return followed


def _run(arguments: list[str]) -> None:
    """Run plantain in this process, as its entry point does."""
    from plantain.cli import main

    sys.argv = ["plantain", *arguments]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def _in_another_process(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "plantain", *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    commands = sys.argv[1:] or list(WALKS)
    if unknown := [command for command in commands if command not in WALKS]:
        print(f"no walk {unknown[0]!r}; choose one of {', '.join(WALKS)}", file=sys.stderr)
        return 2
    if len(commands) > 1:
        for command in commands:
            subprocess.run([sys.executable, __file__, command], check=True)
        return 0
    stdout = os.dup(1)
    os.dup2(2, 1)  # the command's own output
    followed = walk(commands[0])
    os.dup2(stdout, 1)
    files = [str(Path(path).relative_to(PACKAGE)) for path in followed.files]
    before = followed.asked or 0
    for title, part in (("before the first request", files[:before]), ("after it", files[before:])):
        print(f"{title}:", *part, sep="\n  ")
    print(f"{commands[0]}: {len(files)} files, {before} before the first request", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
