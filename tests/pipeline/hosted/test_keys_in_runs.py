"""Keys in whole runs: echoes of a provider are in no kept or shown text, and awkward keys harm no answer."""

from __future__ import annotations

import asyncio
import io
import logging
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import FakeProvider
from files.echoes import KEYS
from pipeline.hosted.echoing import ECHOES, VARIABLES, Echoing, holds_a_key, recipe, texts_of
from plantain.cli import main
from plantain.files import secrets
from plantain.files.secrets import HIDDEN, hide
from plantain.journal import JournalReader
from plantain.pipeline.run import run_build
from plantain.release.layouts.contract import LAYOUTS

LOGGERS = ("httpx2", "httpcore2.http11")
"""Of the HTTP client: at DEBUG they log headers and bodies as they are."""


@pytest.fixture(autouse=True)
def no_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_keys", {})
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


def output_of(*words: str) -> str:
    """The output of a command, on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main(list(words)) == 0, err.getvalue()
    return out.getvalue() + err.getvalue()


def test_no_file_or_output_of_a_run_contains_an_echoed_key(
    catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for logger in LOGGERS:
        caplog.set_level(logging.DEBUG, logger)
    for name, key in zip((*VARIABLES.values(), "A_TOKEN", "A_PASSWORD"), KEYS, strict=True):
        monkeypatch.setenv(name, key)
        hide(key)
    run, out = tmp_path / "run", tmp_path / "release"
    with FakeProvider([gemini_route, openai_route]) as server:
        trouble = server.spoil = Echoing()
        server.key = ""
        summary = asyncio.run(run_build(recipe(catalogue, server.url, "AMD", "Diabetes"), run))
        assert summary.stopped is None, summary
    assert trouble.heard >= len(ECHOES), "every echo was sent at least once"
    with JournalReader.open(run) as reader:
        ids = [row.task.id for row in reader.tasks()]
        assert HIDDEN in "".join(a.instruction for task in ids for a in reader.attempts(task))
    shown = {"logs": caplog.text}
    commands: list[tuple[str, ...]] = [
        ("report", str(run)),
        ("status", str(run)),
        ("status", str(run), "--json"),
        ("show", str(run)),
        ("show", str(run), "--json"),
        ("run", "consent", str(run)),
        ("export", str(run), "--to", str(out), "--layout", ",".join(LAYOUTS), "--licence", "CC-BY-4.0"),
        ("import", str(out), "--run", str(tmp_path / "imported")),
        ("report", str(tmp_path / "imported")),
    ]
    for task in ids[:2]:
        commands += [("show", str(run), task), ("show", str(run), task, "--json")]
    commands.append(("show", str(run), ids[0], "--to", str(tmp_path / "story.html")))
    shown |= {" ".join(words[:4]): output_of(*words) for words in commands}
    shown |= {str(path): text for path, text in texts_of(tmp_path)}
    kinds = {Path(name).suffix for name in shown}
    assert kinds >= {".html", ".json", ".jsonl", ".parquet", ".sqlite", ".md", ".txt"}
    assert {where for where, text in shown.items() if holds_a_key(text)} == set()
