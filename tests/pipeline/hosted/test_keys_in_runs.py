"""Keys in whole runs: what a provider echoes is in nothing that is kept or shown, and awkward keys harm no answer."""

from __future__ import annotations

import asyncio
import base64
import html
import io
import json
import logging
import re
import sqlite3
import tarfile
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import TextIO, cast

import pytest

from fakes import gemini_format, openai_format
from fakes.content import picture, report
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import Answer, FakeProvider, Request
from files.echoes import ENCODINGS, KEYS, corpus, shows
from files.test_redaction import AWKWARD
from pipeline.quick import NoText, quick_catalogue
from plantain.cli import main
from plantain.files import redaction
from plantain.files.redaction import HIDDEN, hide
from plantain.files.secrets import CHATTY
from plantain.files.terminal import _Redacted
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.release.layouts.contract import LAYOUTS

ECHOES = [text for _, _, text in corpus()]
VARIABLES = {"gemini": "GEMINI_API_KEY", "openai": "OPENAI_API_KEY"}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("keys") / "catalogue", images=3)


@pytest.fixture(autouse=True)
def no_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_keys", {})
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


def recipe(catalogue: Path, url: str, *findings: str) -> Recipe:
    """A writer and a judge of Gemini, an editor of OpenAI: two SDKs and three forms of bodies in one run."""
    return Recipe.model_validate(
        {
            "name": "keys",
            "seed": 3,
            "data": {"catalogue": catalogue, "findings": findings or ("AMD",), "directions": ["add"]},
            "models": {"writer": "gemini/w", "editor": "openai/e", "judge": ["gemini/j"]},
            "loop": {"max_rounds": 3},
            "limits": {"concurrency": 4},
            "providers": {"gemini": {"base_url": url}, "openai": {"base_url": f"{url}/v1"}},
        }
    )


class Echoing:
    """Says the corpus wherever a provider puts words: in answers, thoughts, reports and errors of every second edit."""

    def __init__(self) -> None:
        self.said = iter(ECHOES * 3)
        self.edits = 0

    def some(self, number: int) -> str:
        return "\n".join(islice(self.said, number))

    def __call__(self, request: Request, good: Answer) -> Answer:
        if request.path.endswith(":generateContent"):
            if gemini_format.step_of(request) == "judge":
                told = report(gemini_format.prompt_text(request))
                told["reason"] = self.some(20)
                criterion = told["realism"]
                assert isinstance(criterion, dict)
                criterion["evidence"] = self.some(20)
                return gemini_format.text_answer(json.dumps(told))
            return gemini_format.text_answer(f"Brighten the middle. {self.some(40)}")
        self.edits += 1
        if self.edits % 3 == 2:
            return openai_format.error(500, self.some(8), "server_error", X_Debug=KEYS[0])
        return good


def said_by(*words: str) -> str:
    """What a command prints, on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main(list(words)) == 0, err.getvalue()
    return out.getvalue() + err.getvalue()


def test_no_echo_of_the_corpus_is_in_anything_that_a_run_leaves_or_shows(
    catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for logger in CHATTY:
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
    heard = len(ECHOES) * 3 - len(list(trouble.said))
    assert heard >= len(ECHOES), "every echo was said at least once"
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


def texts_of(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file but pictures as text, a journal's rows and a shard's cells too."""
    import pyarrow.parquet as pq

    for path in sorted(
        p for p in folder.rglob("*") if p.is_file() and p.suffix not in (".jpg", ".jpeg", ".png")
    ):
        if "blobs" in path.parts:
            continue
        data = path.read_bytes()
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            kept = [name for name in table.column_names if "string" in str(table.schema.field(name).type)]
            yield path, json.dumps(table.select(kept).to_pylist(), default=str)
        elif path.suffix == ".tar":
            with tarfile.open(path) as tar:
                for member in tar:
                    file = tar.extractfile(member)
                    if file is not None and not member.name.endswith((".jpg", ".png")):
                        yield path / member.name, file.read().decode("utf-8", "replace")
        elif path.suffix == ".sqlite":
            yield path, data.decode("latin-1")
            with sqlite3.connect(path) as connection:
                yield path.with_suffix(".dump.sqlite"), "\n".join(connection.iterdump())
        else:
            yield path, data.decode("utf-8", "replace")


FORMS = {form for key in KEYS for encode in ENCODINGS.values() if (form := encode(key))}
PICTURE = re.compile(r"data:image/[a-z]+;base64,[A-Za-z0-9+/=]+|[A-Za-z0-9+/]{3000,}={0,2}")


def holds_a_key(text: str) -> bool:
    """Every form of the corpus as it was sent, also escaped once more by a page or JSON; short texts decoded deeply."""
    bare = PICTURE.sub("", text)
    layers = (bare, html.unescape(bare), bare.replace("\\\\", "\\").replace('\\"', '"'))
    if any(form in layer for layer in layers for form in FORMS):
        return True
    return len(bare) < 40_000 and any(shows(bare, key) for key in KEYS)


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
    print("".join(told.format()), file=cast(TextIO, _Redacted(printed)))
    assert "ZeroDivisionError" in printed.getvalue() and "self = " in printed.getvalue()
    assert not holds_a_key(printed.getvalue())


def test_fifty_awkward_keys_harm_no_picture_and_no_answer(
    catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = base64.b64encode(picture(".png")).decode()
    awkward = [*AWKWARD, letters[:40], letters[200:240], letters[-40:], "iVBORw0KGgoAAAANSUhEUg"]
    assert len(set(awkward)) >= 50

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
    for key in awkward:
        hide(key)
    assert answers("awkward", ("x", "0")) == plain
    assert answers("longer", (letters[200:240], letters[:40])) == plain
