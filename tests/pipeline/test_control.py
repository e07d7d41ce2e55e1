"""Controls: from the recipe through the editor into every layout of a release."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from datasets import load_dataset

from pipeline.quick import CallLog, Draws, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.journal import JournalReader
from plantain.journal.questions.tables import table1
from plantain.pipeline.forecast import make_plan
from plantain.pipeline.loop import NO_CHANGE
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Step, TaskKind, TaskState
from plantain.release.export import export_run
from plantain.release.importing.importing import import_release
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from plantain.roles import EditedImage


def with_controls(catalogue: Path, number: int) -> Recipe:
    return quick_recipe(catalogue, data={"controls": number})


@pytest.fixture(scope="module")
def run(catalogue: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("control") / "run"
    faithful = Draws(lambda request: EditedImage(request.original))
    method = replace(quick_method(CallLog()), editor=faithful)
    asyncio.run(run_build(with_controls(catalogue, 2), path, method=method))
    return path


def controls(run: Path) -> list[str]:
    with JournalReader.open(run) as reader:
        return [row.id for row in reader.tasks() if row.task.kind is TaskKind.CONTROL]


def test_plan_has_so_many_controls_of_each_modality(catalogue: Path) -> None:
    taxonomy = load_taxonomy()
    with Catalogue.open(catalogue) as opened:
        plan = make_plan(with_controls(catalogue, 2), opened, taxonomy)
        without = make_plan(with_controls(catalogue, 0), opened, taxonomy)
    edits = (Step.EDIT, "quick/editor")
    assert (plan.controls, plan.tasks) == (2, without.tasks)
    assert plan.calls_by[edits].expected == without.calls_by[edits].expected + 2
    assert plan.disk.expected > without.disk.expected


def test_control_is_one_edit_with_nothing_written_or_judged(run: Path) -> None:
    with JournalReader.open(run) as reader:
        composition = table1(reader)
        assert len(controls(run)) == composition.controls == 2
        for name in controls(run):
            row = reader.task(name)
            assert (row.state, row.round) == (TaskState.SUCCESS, 1)
            assert [call.key.step for call in reader.calls(name)] == [Step.EDIT]
            (attempt,) = reader.attempts(name)
            assert attempt.instruction == NO_CHANGE and attempt.edited is not None
            assert attempt.verdict is None and attempt.judge_outcome is None


def test_controls_stand_in_every_layout_apart_from_the_edits(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    export_run(run, out, ExportOptions(LAYOUTS, licences=("CC-BY-4.0",)))
    assert verify_release(out, against=run, pixels=True).problems == ()
    with JournalReader.open(run) as reader:
        blobs = {name: reader.read_blob(reader.attempts(name)[0].edited or "") for name in controls(run)}

    tree = {path.read_bytes() for path in out.glob("*-control/*/*-control.jpeg")}
    assert tree == set(blobs.values()) and not list(out.glob("*-control-failed"))
    told = [json.loads(path.read_text()) for path in out.glob("*-control/all_conversations.json")]
    assert {entry["task"] for file in told for entry in file.values()} == {"control"}
    assert {entry["outcome"] for file in told for entry in file.values()} == {"control"}

    with JournalReader.open(run) as reader:
        successes = reader.counts(TaskKind.EDIT)[TaskState.SUCCESS]
    counted = json.loads((out / "run.json").read_text())["facts"]["tasks"]
    assert (counted["success"], counted["control"]) == (successes, 2)
    assert "control task" in json.loads((out / "run.json").read_text())["facts"]["without_pair"]
    assert "2 control tasks (no-op edits by the same editor)" in (out / "DATASHEET.md").read_text()
    assert "2 **controls** (role `control`)" in (out / "README.md").read_text()

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    splits = load_dataset(str(out), "control", cache_dir=str(tmp_path / "cache"))
    rows = [row for split in splits.values() for row in split.cast_column("image", _undecoded())]
    assert {row["task_id"]: row["image"]["bytes"] for row in rows} == blobs
    assert {(row["kind"], row["direction"], row["outcome"]) for row in rows} == {("control",) * 3}
    assert {row["qualified"] for row in rows} == {None}

    import_release(out, tmp_path / "imported")
    export_run(tmp_path / "imported", tmp_path / "again", ExportOptions(LAYOUTS))
    # The editor returned the source's own bytes: what it sent and what a release only refers to are one blob.
    assert (tmp_path / "again" / "SHA256SUMS").read_bytes() == (out / "SHA256SUMS").read_bytes()


def _undecoded() -> object:
    from datasets import Image

    return Image(decode=False)
