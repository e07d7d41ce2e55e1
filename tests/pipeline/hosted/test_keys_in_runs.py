"""Keys in whole runs: what a provider echoes is in nothing that is kept or shown, and awkward keys harm no answer."""

from __future__ import annotations

import asyncio
import io
import logging
import sqlite3
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO, cast

import pytest

from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import FakeProvider
from files.echoes import KEYS
from files.test_redaction import AWKWARD
from pipeline.hosted.echoing import ECHOES, VARIABLES, Echoing, holds_a_key, recipe, texts_of
from pipeline.quick import NoText, quick_catalogue
from plantain.cli import main
from plantain.files import redaction
from plantain.files.redaction import HIDDEN, hide
from plantain.files.secrets import RedactedStream
from plantain.journal import JournalReader
from plantain.pipeline.run import run_build
from plantain.release.layouts.contract import LAYOUTS

LOGGERS = ("httpx2", "httpcore2.http11", "openai._base_client", "google_genai._api_client")
"""Of the SDKs: at DEBUG they log headers and bodies as they are."""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("keys") / "catalogue", images=3)


@pytest.fixture(autouse=True)
def no_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_keys", {})
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


def said_by(*words: str) -> str:
    """What a command prints, on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main(list(words)) == 0, err.getvalue()
    return out.getvalue() + err.getvalue()


def test_no_echo_of_the_corpus_is_in_anything_that_a_run_leaves_or_shows(
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
        summary = asyncio.run(
            run_build(recipe(catalogue, server.url, "AMD", "Diabetes"), run, text_reader=NoText())
        )
        assert summary.stopped is None, summary
    assert trouble.heard >= len(ECHOES), "every echo was said at least once"
    with JournalReader.open(run) as reader:
        ids = [row.task.id for row in reader.tasks()]
        assert HIDDEN in "".join(a.instruction for a in reader.attempts(ids[0]))
    shown = {"logs": caplog.text}
    commands: list[tuple[str, ...]] = [
        ("report", str(run)),
        ("status", str(run)),
        ("status", str(run), "--json"),
        ("show", str(run)),
        ("show", str(run), "--json"),
        ("consent", str(run)),
        ("export", str(run), "--to", str(out), "--layout", ",".join(LAYOUTS), "--licence", "CC-BY-4.0"),
        ("import", str(out), "--run", str(tmp_path / "imported")),
        ("report", str(tmp_path / "imported")),
    ]
    for task in ids[:2]:
        commands += [("show", str(run), task), ("show", str(run), task, "--json")]
    commands.append(("show", str(run), ids[0], "--to", str(tmp_path / "story.html")))
    shown |= {" ".join(words[:4]): said_by(*words) for words in commands}
    shown |= {str(path): text for path, text in texts_of(tmp_path)}
    kinds = {Path(name).suffix for name in shown}
    assert kinds >= {".html", ".json", ".jsonl", ".parquet", ".sqlite", ".md", ".txt"}
    assert {where for where, text in shown.items() if holds_a_key(text)} == set()


@pytest.mark.parametrize("form", ["gemini", "openai"])
def test_a_traceback_with_locals_from_under_the_sdk_shows_no_key(
    form: str, catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES.values():
        monkeypatch.setenv(name, KEYS[0])

    def explode(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError

    printed = io.StringIO()
    with FakeProvider([gemini_route, openai_route]) as server:
        monkeypatch.setattr(f"plantain.models.hosted.{form}.wire.read_body", explode)
        with pytest.raises(ZeroDivisionError) as caught:
            asyncio.run(run_build(recipe(catalogue, server.url), tmp_path / "run", text_reader=NoText()))
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    print("".join(told.format()), file=cast(TextIO, RedactedStream(printed)))
    assert "ZeroDivisionError" in printed.getvalue() and "self = " in printed.getvalue()
    assert not holds_a_key(printed.getvalue())


def test_awkward_keys_harm_no_image_and_no_answer(
    catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(name: str, keys: tuple[str, str]) -> tuple[list[tuple[object, ...]], list[tuple[str, bytes]]]:
        for variable, key in zip(VARIABLES.values(), keys, strict=True):
            monkeypatch.setenv(variable, key)
        with FakeProvider([gemini_route, openai_route]) as server:
            server.key = ""
            summary = asyncio.run(
                run_build(recipe(catalogue, server.url), tmp_path / name, text_reader=NoText())
            )
            assert summary.stopped is None, summary
        with sqlite3.connect(tmp_path / name / "journal.sqlite") as connection:
            rows = connection.execute(
                "SELECT task, round, step, answer, outcome, usage FROM call ORDER BY task, round, step"
            ).fetchall()
        blobs = sorted(
            (p.name, p.read_bytes()) for p in (tmp_path / name / "blobs").rglob("*") if p.is_file()
        )
        return rows, blobs

    plain = answers("plain", (KEYS[0], KEYS[0]))
    for key in AWKWARD:
        hide(key)
    assert answers("awkward", ("x", "0")) == plain
