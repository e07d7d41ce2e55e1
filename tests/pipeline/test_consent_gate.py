"""The gate itself: real SDKs, a provider that is not loopback, and pictures that may or may not go there."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import pytest

from fakes.away import ELSEWHERE, NAME, RecordedConnections, look_hosted
from fakes.batch_jobs import FakeJobs
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import KEY, FakeProvider
from pipeline.quick import CallLog, NoText, quick_catalogue, quick_method, quick_recipe
from pipeline.test_consent import licensed_catalogue, with_parts
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.sending import sent_pictures
from plantain.pipeline import consent as pipeline_consent
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.pixels.encode import encode_source
from plantain.records import InputError, Licence
from plantain.runs.summary import RunSummary

MODELS = {"writer": "gemini/w", "editor": "openai/e", "judge": ["openai-compatible/j"]}
CONSENT = {"by": "Ethics board", "agreement": "DUA 2026-11, section 4"}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture
def server() -> Iterator[FakeProvider]:
    with FakeProvider([gemini_route, openai_route]) as provider:
        yield provider


def recipe_at(url: str, catalogue: Path, **parts: object) -> Recipe:
    recipe = Recipe.model_validate(
        {
            "name": "gate",
            "seed": 3,
            "data": {"catalogue": catalogue, "findings": ["AMD", "Cataract"], "directions": ["add"]},
            "models": MODELS,
            "loop": {"max_rounds": 2},
            "limits": {"concurrency": 2},
            "providers": {
                "gemini": {"base_url": url},
                "openai": {"base_url": f"{url}/v1"},
                "openai-compatible": {"base_url": f"{url}/v1"},
            },
        }
    )
    return with_parts(recipe, **parts)


def build(recipe: Recipe, run: Path, **options: Any) -> RunSummary:
    return asyncio.run(run_build(recipe, run, text_reader=NoText(), **options))


def begun_at_home(catalogue: Path, url: str, run: Path) -> None:
    """A run whose pictures are in its journal, made by models on this machine; tasks are left."""
    models = {"writer": "quick/writer", "editor": "quick/editor", "judge": ["quick/judge"]}
    recipe = recipe_at(url, catalogue, models=models, providers={"quick": {"base_url": "http://127.0.0.1:9"}})
    asyncio.run(run_build(recipe, run, method=quick_method(CallLog(None)), limit=1))


def without_earlier_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the gate stands before the provider."""
    monkeypatch.setattr(pipeline_consent, "check_consent", lambda *given: None)


def test_the_gate_alone_holds_back_what_is_credentialed(
    server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_earlier_checks(monkeypatch)
    recipe = recipe_at(
        look_hosted(monkeypatch, server.url), licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    )
    with RecordedConnections() as connections:
        summary = build(recipe, tmp_path / "run")
    assert summary.failed and summary.stopped is not None
    for said in ("of scikit-image is credentialed", NAME, ELSEWHERE, "[data.consent]"):
        assert said in summary.stopped
    assert "retina-" not in summary.stopped  # the id of a credentialed image
    assert connections == [] and server.calls == []
    with JournalReader.open(tmp_path / "run") as reader:
        assert list(sent_pictures(reader)) == [] and reader.spent_usd() == 0.0


def test_what_goes_is_recorded_by_its_bytes_and_printed(
    server: FakeProvider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    catalogue = licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    data = {"catalogue": catalogue, "findings": ["AMD"], "directions": ["add"], "consent": CONSENT}
    recipe = recipe_at(look_hosted(monkeypatch, server.url), catalogue, data=data)
    assert build(recipe, tmp_path / "run").stopped is None
    with JournalReader.open(tmp_path / "run") as reader:
        sent = list(sent_pictures(reader))
        originals = {image.prepared_sha256 for image in reader.images()}
        edits = {
            attempt.edited
            for row in reader.tasks()
            for attempt in reader.attempts(row.id)
            if attempt.judge_outcome
        }
    assert originals <= {picture.picture for picture in sent}
    # Every request held a picture: one with the writer and the editor, original and edit with the judge.
    assert len({picture.call for picture in sent}) == len(server.calls)
    judged = [picture for picture in sent if picture.model == "openai-compatible/j"]
    assert len(judged) == 2 * len({picture.call for picture in judged})
    assert {picture.agreement for picture in sent} == {"DUA 2026-11, section 4 (Ethics board)"}
    assert main(["consent", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["sent"]) == len(sent) and edits <= {row["picture"] for row in told["sent"]}
    assert {line["address"].rpartition(":")[0] for line in told["summary"]} == {f"http://{NAME}"}
    assert {line["licence"] for line in told["summary"]} == {"credentialed"}
    assert {tuple(line["connected_to"]) for line in told["summary"]} == {("127.0.0.1",)}  # where the name led
    assert main(["consent", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "credentialed" in printed and "(connected to 127.0.0.1)" in printed
    made = len(server.calls)
    assert build(recipe, tmp_path / "run").made == 0 and len(server.calls) == made


def test_another_catalogue_with_the_same_names_lets_nothing_out(
    server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun on credentialed pictures, then pointed at open ones under the same ids: 8 of 8 once went out."""
    url = look_hosted(monkeypatch, server.url)
    begun_at_home(licensed_catalogue(tmp_path, Licence.CREDENTIALED), server.url, tmp_path / "run")
    other = quick_catalogue(tmp_path / "open")
    with sqlite3.connect(other / "catalogue.sqlite") as db:
        db.execute("UPDATE image SET source_sha256 = 'f' || substr(source_sha256, 2)")
        db.execute("UPDATE meta SET value = 'changed' WHERE key = 'sum'")
    models = {"writer": "quick/writer", "editor": "quick/editor", "judge": ["quick/judge"]}
    recipe = recipe_at(url, other, models=models, providers={"quick": {"base_url": url}})
    log = CallLog(tmp_path / "log")
    with RecordedConnections() as connections, pytest.raises(InputError) as caught:
        asyncio.run(run_build(recipe, tmp_path / "run", method=quick_method(log)))
    said = str(caught.value)
    assert "of scikit-image" in said and "retina-" not in said
    with Catalogue.open(other) as catalogue:
        assert next(catalogue.images()).source_sha256 in said
    assert log.lines() == [] and connections == []


def test_calling_the_same_files_open_lets_nothing_out(
    server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's own record of an image decides, not a catalogue's that is newer."""
    url = look_hosted(monkeypatch, server.url)
    begun_at_home(licensed_catalogue(tmp_path, Licence.CREDENTIALED), server.url, tmp_path / "run")
    shutil.rmtree(tmp_path / "catalogue")
    relabelled = licensed_catalogue(tmp_path, Licence.OPEN)
    models = {"writer": "quick/writer", "editor": "quick/editor", "judge": ["quick/judge"]}
    recipe = recipe_at(url, relabelled, models=models, providers={"quick": {"base_url": url}})
    log = CallLog(tmp_path / "log")
    with pytest.raises(InputError, match="is credentialed"):
        asyncio.run(run_build(recipe, tmp_path / "run", method=quick_method(log)))
    assert log.lines() == []


def test_a_source_prepared_anew_keeps_the_runs_own_bytes(server: FakeProvider, tmp_path: Path) -> None:
    path = quick_catalogue(tmp_path / "catalogue")
    begun_at_home(path, server.url, tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        before = {image.id: image.prepared_sha256 for image in reader.images()}
    anew = tmp_path / "anew"
    with Catalogue.open(path) as old, Catalogue.create(anew) as new:
        for image in old.images():
            pixels = cv2.imdecode(_array(old.read(image)), cv2.IMREAD_COLOR_RGB)
            pixels[:4] = 255 - pixels[:4]
            data = encode_source(pixels)
            new.add(replace(image, group="patient"), data)
    begun_at_home(anew, server.url, tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        kept = {image.id: image for image in reader.images()}
    assert before and all(kept[name].prepared_sha256 == sha256 for name, sha256 in before.items())
    assert all(kept[name].group == "patient" for name in before)


def _array(data: bytes) -> Any:
    import numpy as np

    return np.frombuffer(data, np.uint8)


@pytest.mark.parametrize("licence", [Licence.OPEN, Licence.CREDENTIALED])
def test_a_batch_jobs_file_is_cleared_as_a_whole(
    licence: Licence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_earlier_checks(monkeypatch)
    jobs = FakeJobs(gemini_route)
    with FakeProvider([jobs]) as server, RecordedConnections() as connections:
        url = look_hosted(monkeypatch, server.url)
        rules = {"quiet_s": 0.02, "poll_s": 0.01}
        recipe = recipe_at(
            url,
            licensed_catalogue(tmp_path, licence),
            models={"writer": "gemini/w", "editor": "gemini/e", "judge": ["gemini/w"]},
            providers={"gemini": {"base_url": url, "transport": "batch", "batch": rules}},
        )
        summary = build(recipe, tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        sent = list(sent_pictures(reader))
        asked = {
            call.id for row in reader.tasks() for call in reader.calls(row.id) if call.outcome is not None
        }
    if licence is Licence.OPEN:
        assert summary.stopped is None and {picture.call for picture in sent} == asked
    else:
        assert summary.failed and "is credentialed" in str(summary.stopped)
        assert connections == [] and sent == []


def test_another_packages_model_is_asked_only_what_was_cleared(tmp_path: Path) -> None:
    """It has a connection of its own, so that what it is handed is cleared before it is called."""
    log = CallLog(tmp_path / "log")
    catalogue = licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("plantain.runs.door", "plantain.pipeline.consent"):
            patch.setattr(f"{module}.check_consent", lambda *given: None)
        summary = asyncio.run(run_build(quick_recipe(catalogue), tmp_path / "run", method=quick_method(log)))
    assert summary.failed and "is credentialed" in str(summary.stopped) and log.lines() == []
