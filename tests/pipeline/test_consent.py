"""No image is sent away without its owner's consent: before a run starts, and at the gate before each request."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.away import ELSEWHERE, NAME, RecordedConnections, look_hosted
from fakes.batch_jobs import FakeJobs
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import KEY, FakeProvider
from pipeline.quick import CallLog, NoText, quick_catalogue, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.sending import sent_with_sources
from plantain.pipeline import method as pipeline_method
from plantain.pipeline.method import forecast
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError, Licence
from plantain.runs.progress import RunSummary


def licensed_catalogue(folder: Path, licence: Licence) -> Path:
    path = quick_catalogue(folder / "catalogue")
    with sqlite3.connect(path / "catalogue.sqlite") as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(image)")]
        db.execute("UPDATE image SET licence = ?", (licence.value,))
        if "record" in columns:
            db.execute("UPDATE image SET record = json_set(record, '$.licence', ?)", (licence.value,))
    with Catalogue.open(path) as catalogue:
        assert {image.licence for image in catalogue.images()} == {licence}
    return path


def with_parts(recipe: Recipe, **parts: object) -> Recipe:
    return Recipe.model_validate({**recipe.model_dump(), **parts})


def build(recipe: Recipe, run: Path, log: CallLog) -> None:
    asyncio.run(run_build(recipe, run, method=quick_method(log)))


@pytest.mark.parametrize("licence", [Licence.CREDENTIALED, Licence.UNKNOWN])
def test_images_not_free_to_leave_are_refused_before_anything_is_made(
    licence: Licence, tmp_path: Path
) -> None:
    recipe = quick_recipe(licensed_catalogue(tmp_path, licence))
    log = CallLog(tmp_path / "log")
    with pytest.raises(InputError) as caught:
        build(recipe, tmp_path / "run", log)
    message = str(caught.value)
    assert (
        "\n" not in message
        # Errors end in logs: an id of a credentialed source is not told.
        and ("'retina-0' of scikit-image" in message) == (licence is Licence.UNKNOWN)
        and "of scikit-image" in message
        and "quick/writer is a hosted model" in message
    )
    assert "providers.quick.on_premises = true" in message and "[data.consent]" in message
    for name, says in (("nope/x", "provider 'nope': unknown"), ("gpt-4", "is not provider/model")):
        models = {**recipe.models.model_dump(), "writer": name}
        with pytest.raises(InputError, match=f"^models.writer: '{name}':? {says}"):
            forecast(with_parts(recipe, models=models))  # a name comes before a consent
    assert not (tmp_path / "run").exists() and log.lines() == []


@pytest.mark.parametrize(
    "section",
    [
        {"on_premises": True, "base_url": "https://gpu.hospital/v1"},
        {"base_url": "http://127.0.0.1:8000/v1"},
        {"base_url": "http://[::1]/v1"},
    ],
)
def test_a_model_in_the_house_may_see_every_image(section: dict[str, object], tmp_path: Path) -> None:
    recipe = with_parts(
        quick_recipe(licensed_catalogue(tmp_path, Licence.CREDENTIALED)), providers={"quick": section}
    )
    build(recipe, tmp_path / "run", CallLog(None))


def test_consent_in_the_recipe_is_accepted_and_recorded(tmp_path: Path) -> None:
    recipe = quick_recipe(licensed_catalogue(tmp_path, Licence.CREDENTIALED))
    data = {
        **recipe.data.model_dump(),
        "consent": {"by": "Ethics board", "agreement": "DUA 2026-11, section 4"},
    }
    build(with_parts(recipe, data=data), tmp_path / "run", CallLog(None))
    with JournalReader.open(tmp_path / "run") as reader:
        consent = reader.meta("consent") or ""
    assert "DUA 2026-11" in consent and "quick/editor" in consent


def test_consent_taken_back_stops_a_resumed_run(tmp_path: Path) -> None:
    path = licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    recipe = quick_recipe(path)
    at_home = with_parts(
        recipe, providers={"quick": {"on_premises": True, "base_url": "https://gpu.hospital/v1"}}
    )
    asyncio.run(run_build(at_home, tmp_path / "run", method=quick_method(CallLog(None)), limit=2))
    log = CallLog(tmp_path / "log")
    with pytest.raises(InputError, match="hosted model"):
        build(recipe, tmp_path / "run", log)
    assert log.lines() == []


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


def built(recipe: Recipe, run: Path, **options: Any) -> RunSummary:
    return asyncio.run(run_build(recipe, run, text_reader=NoText(), **options))


def begun_at_home(catalogue: Path, url: str, run: Path) -> None:
    """A run whose pictures are in its journal, made by models on this machine; tasks are left."""
    models = {"writer": "quick/writer", "editor": "quick/editor", "judge": ["quick/judge"]}
    recipe = recipe_at(url, catalogue, models=models, providers={"quick": {"base_url": "http://127.0.0.1:9"}})
    asyncio.run(run_build(recipe, run, method=quick_method(CallLog(None)), limit=1))


def without_earlier_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the gate stands before the provider."""
    monkeypatch.setattr(pipeline_method, "check_consent", lambda *given: None)


def test_the_gate_alone_holds_back_what_is_credentialed(
    server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_earlier_checks(monkeypatch)
    recipe = recipe_at(
        look_hosted(monkeypatch, server.url), licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    )
    with RecordedConnections() as connections:
        summary = built(recipe, tmp_path / "run")
    assert summary.failed and summary.stopped is not None
    for said in ("of scikit-image is credentialed", NAME, ELSEWHERE, "[data.consent]"):
        assert said in summary.stopped
    assert "retina-" not in summary.stopped  # the id of a credentialed image
    assert connections == [] and server.calls == []
    with JournalReader.open(tmp_path / "run") as reader:
        assert [row for row, *_ in sent_with_sources(reader)] == [] and reader.spent_usd() == 0.0


def test_what_goes_is_recorded_by_its_bytes_and_printed(
    server: FakeProvider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    catalogue = licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    data = {"catalogue": catalogue, "findings": ["AMD"], "directions": ["add"], "consent": CONSENT}
    recipe = recipe_at(look_hosted(monkeypatch, server.url), catalogue, data=data)
    assert built(recipe, tmp_path / "run").stopped is None
    with JournalReader.open(tmp_path / "run") as reader:
        sent = [row for row, *_ in sent_with_sources(reader)]
        originals = {image.prepared_sha256 for image in reader.images()}
        edits = {
            attempt.edited
            for row in reader.tasks()
            for attempt in reader.attempts(row.id)
            if attempt.judge_outcome
        }
    assert originals <= {one.file for one in sent}
    # Every request held a picture: one with the writer and the editor, original and edit with the judge.
    assert len({picture.call for picture in sent}) == len(server.calls)
    judged = [picture for picture in sent if picture.model == "openai-compatible/j"]
    assert len(judged) == 2 * len({picture.call for picture in judged})
    assert {picture.agreement for picture in sent} == {"DUA 2026-11, section 4 (Ethics board)"}
    assert main(["run", "consent", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["sent"]) == len(sent) and edits <= {row["file"] for row in told["sent"]}
    assert {line["address"].rpartition(":")[0] for line in told["summary"]} == {f"http://{NAME}"}
    assert {line["licence"] for line in told["summary"]} == {"credentialed"}
    assert {tuple(line["connected_to"]) for line in told["summary"]} == {("127.0.0.1",)}  # where the name led
    assert main(["run", "consent", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "credentialed" in printed and "(connected to 127.0.0.1)" in printed
    made = len(server.calls)
    assert built(recipe, tmp_path / "run").made == 0 and len(server.calls) == made


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
        summary = built(recipe, tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        sent = [row for row, *_ in sent_with_sources(reader)]
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
        for module in ("plantain.runs.setup", "plantain.pipeline.method"):
            patch.setattr(f"{module}.check_consent", lambda *given: None)
        summary = asyncio.run(run_build(quick_recipe(catalogue), tmp_path / "run", method=quick_method(log)))
    assert summary.failed and "is credentialed" in str(summary.stopped) and log.lines() == []
