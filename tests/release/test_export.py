"""Exporting writes the same bytes every time, even after interruptions; refusals change nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from fakes.commands import refused
from fakes.full_disk import full_disk
from plantain.journal import JournalReader
from plantain.journal.connect import JOURNAL_NAME
from plantain.records import InputError, Licence
from plantain.release.export import export_run
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.naming import CROSSWALK
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from release.runs import make_run, tree

SEED = 20261126
ALL = ExportOptions(LAYOUTS, shard_bytes=60_000, licences=("CC-BY-4.0",))


def test_two_exports_are_identical(small_run: Path, release: Path, tmp_path: Path) -> None:
    export_run(small_run, tmp_path / "again", ALL)
    assert tree(tmp_path / "again") == tree(release)


@pytest.mark.slow
def test_a_killed_export_leaves_no_release_and_its_restart_is_identical(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", images=3)
    started = time.monotonic()
    export_run(run, tmp_path / "whole", ALL)
    whole = time.monotonic() - started
    rng, out = random.Random(SEED), tmp_path / "out"
    for _ in range(8):
        child = os.fork()
        if child == 0:
            export_run(run, out, ALL)
            os._exit(0)
        time.sleep(rng.random() * whole)
        os.kill(child, signal.SIGKILL)
        if os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            assert not out.exists()
        else:
            out.rename(tmp_path / "finished")
            break
    export_run(run, out, ALL)
    assert tree(out) == tree(tmp_path / "whole")
    assert not list(tmp_path.glob(".*"))


def test_a_release_contains_the_run_as_it_was_at_the_start(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", images=3)
    export_run(run, tmp_path / "before", ALL)

    def close_one(stage: str) -> None:
        if stage == "writing parquet":
            with closing(sqlite3.connect(run / JOURNAL_NAME)) as journal, journal:
                journal.execute("UPDATE task SET state = 'failed' WHERE state = 'pending'")

    out = tmp_path / "out"
    export_run(run, out, ALL, close_one)
    assert tree(out) == tree(tmp_path / "before")
    with pytest.raises(InputError, match="exists already; name a new folder"):
        export_run(run, out, ALL)
    export_run(run, tmp_path / "after", ALL)
    assert tree(out) != tree(tmp_path / "after")


def test_an_existing_folder_is_refused_even_empty(
    small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renamed folder would replace its mode, could not replace a mount, and a shell in it would lose it."""
    monkeypatch.chdir(tmp_path)
    for folder in (Path(), tmp_path):
        with pytest.raises(InputError, match="exists already; name a new folder"):
            export_run(small_run, folder, ALL)


def test_credentialed_source_needs_the_agreement(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", images=4, licence=Licence.CREDENTIALED)
    out = tmp_path / "out"
    assert "--redistribution-approved" in refused(
        "export", run, "--to", out, "--layout", "parquet,med-banana"
    )
    assert not (run / CROSSWALK).exists() and not out.exists()
    options = ExportOptions(("med-banana", "parquet", "webdataset"), redistribution_approved="DUA 7")
    export_run(run, out, options)
    assert "license: other" in (out / "README.md").read_text()
    assert all("DUA 7" in (out / name).read_text() for name in ("README.md", "LICENSES/parts.json"))
    assert verify_release(out, against=run).problems == ()
    crosswalk = json.loads((run / CROSSWALK).read_text())["ids"]
    with JournalReader.open(run) as reader:
        ids = {row.task.image_id for row in reader.tasks()}
        groups = {image.group for image in reader.images() if image.group}
        hashes = {image.source_sha256 for image in reader.images()}
    assert {key.split("/", 1)[1] for key in crosswalk} >= ids
    for path in out.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        for name in (*ids, *groups, *hashes):
            assert name.encode() not in data, path
            assert name.replace(" ", "_") not in str(path)
    export_run(run, tmp_path / "again", options)
    assert tree(tmp_path / "again") == tree(out)


def test_a_full_disk_is_reported_in_one_line_and_leaves_nothing(small_run: Path, tmp_path: Path) -> None:
    """In the middle of a shard."""
    with ExitStack() as limited:

        def fill(stage: str) -> None:
            if stage == "writing webdataset":
                limited.enter_context(full_disk(30_000))

        with pytest.raises(InputError, match="the disk is full"):
            export_run(small_run, tmp_path / "out", ALL, fill)
    assert list(tmp_path.iterdir()) == []
