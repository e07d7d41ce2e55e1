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

from fakes.away import NAME, RecordedConnections, look_hosted
from fakes.batch_jobs import FakeJobs
from fakes.gemini_format import gemini_route
from fakes.server import FakeProvider
from pipeline.quick import CallLog, at_url, quick_catalogue, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.sending import SentImage, sent_with_sources
from plantain.pipeline import run as pipeline_run
from plantain.pipeline.forecast import forecast
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError, Licence
from plantain.runs.progress import RunSummary


def licensed_catalogue(folder: Path, licence: Licence) -> Path:
    return quick_catalogue(folder / "catalogue", changes={"licence": licence})


def build(recipe: Recipe, run: Path, log: CallLog) -> None:
    asyncio.run(run_build(recipe, run, method=quick_method(log)))


@pytest.mark.parametrize("licence", [Licence.CREDENTIALED, Licence.UNKNOWN])
def test_images_without_consent_are_refused_before_the_run_exists(licence: Licence, tmp_path: Path) -> None:
    recipe = quick_recipe(licensed_catalogue(tmp_path, licence))
    log = CallLog(tmp_path / "log")
    with pytest.raises(InputError) as caught:
        build(recipe, tmp_path / "run", log)
    message = str(caught.value)
    assert (
        "\n" not in message
        # Errors end in logs: they never contain the id of a credentialed image.
        and ("'retina-0' of scikit-image" in message) == (licence is Licence.UNKNOWN)
        and "of scikit-image" in message
        and "quick/writer is a hosted model" in message
    )
    assert "providers.quick.on_premises = true" in message and "[data.consent]" in message
    for name, reason in (("nope/x", "provider 'nope': unknown"), ("gpt-4", "is not provider/model")):
        models = {**recipe.models.model_dump(), "writer": name}
        with pytest.raises(InputError, match=f"^models.writer: '{name}':? {reason}"):
            # a name comes before a consent
            forecast(quick_recipe(recipe.data.catalogue, parts={"models": models}))
    assert not (tmp_path / "run").exists() and log.lines() == []


@pytest.mark.parametrize(
    "section",
    [
        {"on_premises": True, "base_url": "https://gpu.hospital/v1"},
        {"base_url": "http://127.0.0.1:8000/v1"},
        {"base_url": "http://[::1]/v1"},
    ],
)
def test_a_model_on_the_premises_receives_every_image(section: dict[str, object], tmp_path: Path) -> None:
    catalogue = licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    recipe = quick_recipe(catalogue, parts={"providers": {"quick": section}})
    build(recipe, tmp_path / "run", CallLog())


def test_withdrawn_consent_stops_a_resumed_run(tmp_path: Path) -> None:
    path = licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    recipe = quick_recipe(path)
    own = {"quick": {"on_premises": True, "base_url": "https://gpu.hospital/v1"}}
    at_home = quick_recipe(path, parts={"providers": own})
    asyncio.run(run_build(at_home, tmp_path / "run", method=quick_method(CallLog(None)), limit=2))
    log = CallLog(tmp_path / "log")
    with pytest.raises(InputError, match="hosted model"):
        build(recipe, tmp_path / "run", log)
    assert log.lines() == []


MODELS = {"writer": "gemini/w", "editor": "openai/e", "judge": ["openai-compatible/j"]}
CONSENT = {"by": "Ethics board", "agreement": "DUA 2026-11, section 4"}


def recipe_at(url: str, catalogue: Path, *findings: str, consent: object = None, **parts: object) -> Recipe:
    parts = {"seed": 3, "models": MODELS, "providers": at_url(url), **parts}
    return quick_recipe(
        catalogue,
        findings=findings or ("AMD", "Cataract"),
        data={"consent": consent},
        limits={"concurrency": 2},
        parts=parts,
        max_rounds=2,
    )


def built(recipe: Recipe, run: Path, **options: Any) -> RunSummary:
    return asyncio.run(run_build(recipe, run, **options))


def quick_at(url: str, catalogue: Path) -> Recipe:
    return quick_recipe(catalogue, parts={"providers": {"quick": {"base_url": url}}})


def run_on_loopback(catalogue: Path, run: Path) -> None:
    """A run whose images are in its journal, made by models on this machine; tasks are left."""
    recipe = quick_at("http://127.0.0.1:9", catalogue)
    asyncio.run(run_build(recipe, run, method=quick_method(CallLog(None)), limit=1))


def test_sent_images_are_recorded_by_their_bytes_and_printed(
    server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    recipe = recipe_at(look_hosted(monkeypatch, server.url), catalogue, "AMD", consent=CONSENT)
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
    # Every request held an image: one with the writer and the editor, original and edit with the judge.
    assert len({image.call for image in sent}) == len(server.calls)
    judged = [image for image in sent if image.model == "openai-compatible/j"]
    assert len(judged) == 2 * len({image.call for image in judged})
    assert {image.agreement for image in sent} == {"DUA 2026-11, section 4 (Ethics board)"}
    assert main(["run", "consent", str(tmp_path / "run"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["sent"]) == len(sent) and edits <= {row["file"] for row in data["sent"]}
    assert {line["address"].rpartition(":")[0] for line in data["summary"]} == {f"http://{NAME}"}
    assert {line["licence"] for line in data["summary"]} == {"credentialed"}
    assert {tuple(line["connected_to"]) for line in data["summary"]} == {("127.0.0.1",)}  # where the name led
    assert main(["run", "consent", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "credentialed" in printed and "(connected to 127.0.0.1)" in printed
    made = len(server.calls)
    assert built(recipe, tmp_path / "run").made == 0 and len(server.calls) == made


def test_sent_images_are_printed_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All rows of a large run may not fit in memory."""
    build(
        quick_recipe(licensed_catalogue(tmp_path, Licence.OPEN)), tmp_path / "run", CallLog(tmp_path / "log")
    )
    printed = []

    def rows(reader: JournalReader) -> Iterator[tuple[SentImage, str, str]]:
        for number in range(3):
            printed.append(capsys.readouterr().out)
            yield SentImage(str(number), "i", "m", "a", "hosted", "", number, "now"), "dataset", "open"

    monkeypatch.setattr("plantain.cli.run.consent.sent_with_sources", rows)
    assert main(["run", "consent", str(tmp_path / "run"), "--json"]) == 0
    assert '"file":"0"' in printed[1] and '"file":"1"' in printed[2]
    document = json.loads("".join(printed) + capsys.readouterr().out)
    assert [row["file"] for row in document["sent"]] == ["0", "1", "2"]


def test_another_catalogue_with_the_same_names_sends_nothing(
    server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started on credentialed images, then pointed at open ones under the same ids: 8 of 8 were once sent."""
    url = look_hosted(monkeypatch, server.url)
    run_on_loopback(licensed_catalogue(tmp_path, Licence.CREDENTIALED), tmp_path / "run")
    other = quick_catalogue(tmp_path / "open")
    with sqlite3.connect(other / "catalogue.sqlite") as db:
        db.execute("UPDATE image SET source_sha256 = 'f' || substr(source_sha256, 2)")
        db.execute("UPDATE meta SET value = 'changed' WHERE key = 'sum'")
    log = CallLog(tmp_path / "log")
    with RecordedConnections() as connections, pytest.raises(InputError) as caught:
        build(quick_at(url, other), tmp_path / "run", log)
    message = str(caught.value)
    assert "of scikit-image" in message and "retina-" not in message
    with Catalogue.open(other) as catalogue:
        assert any(image.source_sha256 in message for image in catalogue.images())
    assert log.lines() == [] and connections == []


def test_relabelling_the_same_files_as_open_sends_nothing(
    server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's own record of an image decides, not a catalogue's that is newer."""
    url = look_hosted(monkeypatch, server.url)
    run_on_loopback(licensed_catalogue(tmp_path, Licence.CREDENTIALED), tmp_path / "run")
    shutil.rmtree(tmp_path / "catalogue")
    relabelled = licensed_catalogue(tmp_path, Licence.OPEN)
    log = CallLog(tmp_path / "log")
    with pytest.raises(InputError, match="is credentialed"):
        build(quick_at(url, relabelled), tmp_path / "run", log)
    assert log.lines() == []


def test_a_licence_stated_later_replaces_an_unknown_one(tmp_path: Path) -> None:
    for licence in (Licence.UNKNOWN, Licence.OPEN):
        shutil.rmtree(tmp_path / "catalogue", ignore_errors=True)
        run_on_loopback(licensed_catalogue(tmp_path, licence), tmp_path / "run")
        with JournalReader.open(tmp_path / "run") as reader:
            assert {image.licence for image in reader.images()} == {licence}


@pytest.mark.parametrize("licence", [Licence.OPEN, Licence.CREDENTIALED])
def test_a_batch_jobs_file_is_cleared_as_a_whole(
    licence: Licence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_run, "check_consent", lambda *given: None)  # but for the gate
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
        assert summary.stopped is None and {image.call for image in sent} == asked
    else:
        assert summary.failed and "is credentialed" in str(summary.stopped)
        assert connections == [] and sent == []


def test_another_packages_model_receives_only_cleared_requests(tmp_path: Path) -> None:
    """Its connections are its own, so that its inputs are checked before it is called."""
    log = CallLog(tmp_path / "log")
    catalogue = licensed_catalogue(tmp_path, Licence.CREDENTIALED)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("plantain.runs.setup", "plantain.pipeline.run"):
            patch.setattr(f"{module}.check_consent", lambda *given: None)
        summary = asyncio.run(run_build(quick_recipe(catalogue), tmp_path / "run", method=quick_method(log)))
    assert summary.failed and "is credentialed" in str(summary.stopped) and log.lines() == []
