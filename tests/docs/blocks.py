"""The blocks of code on a page, and running them: commands in a folder, compared with the output shown below them.

A comment above a block has one more piece of information:

    <!-- needs: a key -->          it is read, not run: its commands, options, extras and make targets must exist
    <!-- file: pilot.toml -->      the block is the content of that file

An id of a task depends on bytes that an encoder wrote. An id in the output shown on a page is replaced by the run's
own id in all later blocks.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from typer._click import Command, Context
from typer.core import TyperGroup

from plantain.cli import COMMANDS, LazyGroup, main

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>needs|file): (?P<value>[^\n]*?) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
_NUMBER = re.compile(r"(?<![\w.])\$?\d[\d,.]*(?:e-?\d+)?")
_TASK = re.compile(r"\b[0-9a-f]{20}\b")
_BEGINNING = re.compile(r"(?<= )[0-9a-f]{4,20}(?= )")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b")


@dataclass(frozen=True, slots=True)
class Block:
    """One block: its language, its text, and the comment above it."""

    page: str
    line: int
    language: str
    text: str
    needs: str = ""
    file: str = ""

    @property
    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Each command with the lines of output below it; lines that end in a backslash are joined."""
        text = self.text.replace("\\\n", " ")
        if self.language == "sh":
            yield from ((line, []) for line in text.splitlines() if line.strip() and not line.startswith("#"))
            return
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, *output = part.splitlines()
            yield command, output


def blocks(page: Path) -> Iterator[Block]:
    """Every block of a page that has a language."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        mark = {found["mark"]: found["value"]} if found["mark"] else {}
        line = text.count("\n", 0, found.start("language")) + 1
        name = str(page.relative_to(ROOT))
        yield Block(name, line, found["language"], found["text"], mark.get("needs", ""), mark.get("file", ""))


def shape(line: str) -> str:
    """A line without the parts that change from run to run: numbers, hashes, runs of spaces."""
    return " ".join(_NUMBER.sub("N", _HASH.sub("H", line)).split())


def ids_in(expected: list[str], output: str) -> dict[str, str]:
    """Return the ids of tasks on a page, each with the id in the same line of the output."""
    found: dict[str, str] = {}
    for line in expected:
        for got in output.splitlines():
            shown, own = _TASK.findall(line), _TASK.findall(got)
            if shown and shape(line) in shape(got) and not set(own) & set(found.values()):
                found.update(zip(shown, own, strict=False))
                break
    return found


def with_own_ids(command: str, ids: dict[str, str]) -> str:
    """A command with a run's own ids instead of the page's, also where they are abbreviated."""

    def own(match: re.Match[str]) -> str:
        return next((id for shown, id in ids.items() if shown.startswith(match[0])), match[0])

    return _BEGINNING.sub(own, command)


def missing(expected: list[str], output: str) -> list[str]:
    """Return expected lines that are missing in the output, in this order; "..." matches any lines."""
    lines = iter(shape(line) for line in output.splitlines())
    return [
        line
        for line in expected
        if line.strip() not in ("", "...") and not any(shape(line) in got for got in lines)
    ]


def run(command: str) -> tuple[int, str]:
    """Exit code and output of one `plantain` command, in this process and folder."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main(shlex.split(command, comments=True)[1:])
    return code, printed.getvalue()


def perform(block: Block, ids: dict[str, str]) -> Iterator[str]:
    """Run a block in the current folder and yield its problems. Ids shown on pages are added to `ids`."""
    where = f"{block.page}:{block.line}"
    if block.file:
        path = Path(block.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
    elif block.language in ("sh", "console"):
        for command, expected in block.commands:
            if block.needs or not command.startswith("plantain "):
                yield from (f"{where}: {problem}" for problem in parsed(command))
                continue
            code, output = run(with_own_ids(command, ids))
            ids.update(ids_in(expected, output))
            if code != 0:
                yield f"{where}: {command}: exit code {code}: {output[-300:]}"
            yield from (
                f"{where}: {command}: did not say {line!r}: {output}" for line in missing(expected, output)
            )
    elif block.language == "python":
        code = compile(block.text, where, "exec")
        if not block.needs:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, {"__name__": "__main__"})
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "json":
        json.loads(block.text)


def run_pages(pages: Iterable[Path]) -> dict[Path, list[str]]:
    """Return the problems of each page; the pages run in this order in the current folder."""
    ids: dict[str, str] = {}
    return {page: [problem for block in blocks(page) for problem in perform(block, ids)] for page in pages}


def parsed(line: str) -> Iterator[str]:
    """Yield the problems of a command that is not run: an unknown command, option, extra or make target."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["make"]:
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
        yield from (
            f"no make target {word!r}" for word in words[1:] if "=" not in word and word not in targets
        )
    elif words[:2] == ["pip", "install"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        named = re.findall(r"[\w-]+", "".join(re.findall(r"\[(.*?)\]", line)))
        known = project["optional-dependencies"]
        yield from (f"no extra {name!r}" for name in named if name not in known)
    elif words[:1] == ["plantain"]:
        yield from _unknown_words(words[1:])
    elif words[:1] not in ([], ["source"], ["export"], ["cd"], ["git"], ["python"], ["sbatch"], ["ray"]):
        yield f"{words[0]!r} is not a command that a page may show"


def _unknown_words(words: list[str]) -> Iterator[str]:
    command: Command = LazyGroup("", "", COMMANDS)
    context = Context(command)
    while isinstance(command, TyperGroup) and words:
        name, words = words[0], words[1:]
        if name not in command.list_commands(context):
            yield f"no command {name!r}"
            return
        found = command.get_command(context, name)
        assert found is not None
        command = found
    known = {name for one in command.get_params(context) for name in (*one.opts, *one.secondary_opts)}
    for word in words:
        name = word.partition("=")[0]
        if word.startswith("--") and name not in known:
            yield f"plantain {command.name}: no option {name}"


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Enter a folder, without API keys, in a terminal as wide as the pages."""
    before = dict(os.environ)
    for name in [name for name in before if name.endswith("_API_KEY")]:
        del os.environ[name]
    os.environ["COLUMNS"] = "100"
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
