"""Every echo of the corpus at every exit of text: the journal, its log, pages, the terminal, logs, reasons."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

import orjson
import pytest

from files.echoes import KEYS, corpus, shows
from plantain.files import secrets
from plantain.files.secrets import RedactedStream, Secret, hide, key_from_environment, redacted_line
from plantain.journal import Journal, RunHeader
from plantain.models.hosted.answers import scrub
from plantain.models.hosted.faults import http_fault, read_body
from plantain.pages.publishing import write_page

ECHOES = list(corpus())


@pytest.fixture(autouse=True)
def hidden() -> Iterator[None]:
    before = dict(secrets._keys)
    for key in KEYS:
        hide(key)
    yield
    secrets._keys.clear()
    secrets._keys.update(before)


def test_journal_and_its_log_contain_no_key(tmp_path: Path) -> None:
    run = tmp_path / "run"

    async def fill() -> bytes:
        async with Journal.create(run, RunHeader("r", "run", 1, {"got": ECHOES[0][2]}, "")) as journal:
            for number, (_, _, text) in enumerate(ECHOES):
                await journal.set_meta(f"m{number}", json.dumps({"n": number, "answer": [text, {"t": text}]}))
            return b"".join(path.read_bytes() for path in run.glob("journal*"))

    live = asyncio.run(fill())
    with sqlite3.connect(run / "journal.sqlite") as connection:
        rows = dict(connection.execute("SELECT key, value FROM meta WHERE key GLOB 'm[0-9]*'"))
    assert len(rows) == len(ECHOES)
    for number, (name, key, _) in enumerate(ECHOES):
        kept = rows[f"m{number}"]
        assert orjson.loads(kept)["n"] == number, "JSON must stay JSON"
        assert not shows(kept, key), name
    closed = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert not any(key.encode() in data for key in KEYS for data in (live, closed))


def test_a_providers_answers_and_faults_contain_no_key() -> None:
    for name, key, text in ECHOES:
        body = read_body(orjson.dumps({"candidates": [{"text": text}], text: 1}))
        assert not shows(orjson.dumps(scrub(body)).decode(), key), name
        error = secrets.redacted(orjson.dumps({"error": {"message": "a" * 150 + text, "code": 401}}).decode())
        assert not shows(http_fault("some/model", 401, error, {}).reason, key), name
        assert not shows(redacted_line(orjson.dumps({"key": "1", "response": text}) + b"\n").decode(), key), (
            name
        )
        assert not shows(redacted_line(text.encode() + b" no json\n").decode(), key), name


def test_pages_terminal_and_logs_show_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEYS[0])
    assert isinstance(key_from_environment(("SOME_API_KEY",), "some"), Secret)
    printed, logged = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    logger = logging.getLogger("openai._base_client")
    logger.addHandler(handler)
    try:
        for name, key, text in ECHOES:
            for sink in (printed, logged):
                sink.seek(0)
                sink.truncate()
            print("got", text, file=cast(TextIO, RedactedStream(printed)))
            logger.warning("%s came", text)
            write_page(tmp_path / "page.html", f"<p>{text}</p>")
            page = (tmp_path / "page.html").read_text(encoding="utf-8")
            for where, seen in (("terminal", printed.getvalue()), ("log", logged.getvalue()), ("page", page)):
                assert seen.strip()
                assert not shows(seen, key), (where, name)
    finally:
        logger.removeHandler(handler)
