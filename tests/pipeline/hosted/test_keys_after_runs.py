"""Keys in what later commands keep and show: judging again, cards, pilots, comparisons, benchmarks, bills, pages."""

from __future__ import annotations

import asyncio
import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import FakeProvider
from files.echoes import KEYS
from pipeline.hosted.echoing import ECHOES, VARIABLES, Echoing, holds_a_key, recipe, texts_of
from pipeline.quick import NoText, quick_catalogue
from plantain.cli import main
from plantain.files import redaction
from plantain.files.redaction import hide
from plantain.journal import JournalReader
from plantain.pipeline.run import run_build
from plantain.review.viewer.run_view import RunView
from plantain.review.viewer.server import create_viewer

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

RECIPE = """
name = "pilot"
[data]
catalogue = "{catalogue}"
findings = ["AMD"]
directions = ["add"]
[models]
writer = "gemini/w"
editor = "openai/e"
judge = ["gemini/j"]
"""
SETTINGS = """
[limits]
concurrency = 4
[providers.gemini]
base_url = "{url}"
[providers.openai]
base_url = "{url}/v1"
"""


@pytest.mark.slow
def test_no_echo_of_the_corpus_is_in_anything_that_later_commands_leave_or_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "_keys", {})
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    for name, key in zip((*VARIABLES.values(), "A_TOKEN", "A_PASSWORD"), KEYS, strict=True):
        monkeypatch.setenv(name, key)
        hide(key)
    catalogue = quick_catalogue(tmp_path / "catalogue", images=1)
    run, bench, outputs = (str(tmp_path / name) for name in ("run", "bench", "outputs"))
    with FakeProvider([gemini_route, openai_route]) as server:
        trouble = server.spoil = Echoing()
        server.key = ""
        asyncio.run(run_build(recipe(catalogue, server.url), Path(run), text_reader=NoText()))
        settings, pilot = tmp_path / "settings.toml", tmp_path / "pilot.toml"
        settings.write_text(SETTINGS.format(url=server.url))
        pilot.write_text(RECIPE.format(catalogue=catalogue) + SETTINGS.format(url=server.url))
        (tmp_path / "bill.csv").write_text(f"id,cost\n{KEYS[0]},0.1\n")
        judge = ("--judge", "gemini/j", "--settings", str(settings))
        told = {
            " ".join(words): said_by(*words)
            for words in (
                ("judge", "rejudge", run, "--judge", "gemini/k", "--settings", str(settings)),
                (
                    "judge",
                    "audit",
                    run,
                    *judge,
                    "--run",
                    str(tmp_path / "audit"),
                    "--pairs",
                    "1",
                    "--kinds",
                    "identical",
                ),
                ("pilot", str(pilot), "--run", str(tmp_path / "pilot"), "--tasks", "2"),
                ("judge", "rejudge", run, "--prompts", "ours", "--prompts", "published", *judge[2:]),
                ("reconcile", run, str(tmp_path / "bill.csv"), "--provider", "gemini"),
                ("models", "--probe", str(pilot), "--run", str(tmp_path / "probe")),
                ("models", "--probe", "openai/e", "--base-url", f"{server.url}/v1", "--json"),
                ("models", "--drift", "--base-url", server.url),
                ("bench", "from-build", run, "--out", bench),
                ("bench", "generate", bench, "--run", outputs, "--editor", "openai/e", *judge[2:]),
                ("bench", "score", outputs, *judge, "--draws", "1"),
                ("bench", "table", outputs),
                ("bench", "pack", outputs, "--to", str(tmp_path / "bundle")),
                ("bench", "site", str(tmp_path / "bundle"), "--to", str(tmp_path / "site")),
                ("consent", str(tmp_path / "audit")),
                ("report", str(tmp_path / "pilot")),
                ("show", outputs),
            )
        }
    assert trouble.heard >= len(ECHOES), "every echo was said at least once"
    assert not {words: said for words, (code, said) in told.items() if code > ("models --" in words)}
    shown = {words: said for words, (_, said) in told.items()}
    with JournalReader.open(Path(run)) as reader:
        ids = [row.task.id for row in reader.tasks()]
    web = TestClient(create_viewer(RunView(Path(run))), base_url="http://127.0.0.1")
    for page in ("/", *(f"/task/{task}" for task in ids)):
        answer = web.get(page)
        assert answer.status_code == 200, page
        shown[page] = answer.text
    shown |= {str(path): text for path, text in texts_of(tmp_path) if path.name != "bill.csv"}
    assert {where for where, text in shown.items() if holds_a_key(text)} == set()


def said_by(*words: str) -> tuple[int, str]:
    """How a command ends, and what it prints on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(words))
    return code, out.getvalue() + err.getvalue()
