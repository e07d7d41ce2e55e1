"""A stopped command advises a command with the words that were typed; long work asks before it starts."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from fakes.commands import refused
from plantain.cli import ABOUT, COMMANDS, LazyGroup
from plantain.cli.terminal.progress import StageProgress, print_end


@pytest.mark.parametrize(
    "typed",
    [
        "build 'my recipe.toml' --run runs/a --engine ray --accept-model-change",
        "build r.toml --run runs/a --pilot 8",
        "judge audit runs/a --judge gemini/x --study s1 --study s2 --run audit --settings t.toml --pairs 3 --yes",
        "bench generate b --run r --editor a/b=c --editor d/e --sweep guidance=7,8 --seeds 3 --settings 's t.toml' "
        "--retry refused",
        "bench score r --judge a/b --variant P --variant D --draws 2 --retry",
        "train finetune bench --model diffusers/x --to ft --set lora_rank=8 --set sizes=4,8",
        "bench attention r --editor diffusers/x --to page",
        "demo here",
    ],
)
def test_resume_repeats_every_word(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The words typed are the expected value, in the order of the options."""
    monkeypatch.chdir(tmp_path)
    for recipe in ("my recipe.toml", "r.toml"):
        (tmp_path / recipe).touch()
    words = shlex.split(typed)
    command, context, rest = LazyGroup("", ABOUT, COMMANDS), None, ["plantain", *words]
    while isinstance(command, LazyGroup):
        context, rest = command.make_context(rest[0], rest[1:], parent=context), rest[1:]
        command = command.get_command(context, rest[0])
    context = command.make_context(rest[0], rest[1:], parent=context)
    ended = SimpleNamespace(stopped="limit", failed=False, left="")
    assert print_end(context, ended) == 3
    progress = StageProgress(quiet=True)
    with context:
        progress.stopping()  # Ctrl-C
        progress.stopping()  # and again
    _, ended_by_limit, at_once = capsys.readouterr().err.split("resume with: ")
    for line in (ended_by_limit.splitlines()[0], at_once):
        advised = shlex.split(line)
        assert advised[0] == "plantain" and sorted(advised[1:]) == sorted(words)


def test_long_audit_needs_a_yes_without_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert (
        "--yes" in refused("judge", "audit", "--run", tmp_path / "audit")
        and not (tmp_path / "audit").exists()
    )
