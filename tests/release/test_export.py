"""Exporting: the same bytes every time, whatever happens on the way, and refusals that change nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.commands import refused
from fakes.full_disk import full_disk
from plantain.journal import Journal, JournalReader
from plantain.records import InputError, Licence, TaskState
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
def test_killed_anywhere_and_restarted_is_identical(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", images=3)
    whole = tmp_path / "whole"
    export_run(run, whole, replace(ALL, shard_bytes=200_000))
    driver = Path(__file__).with_name("kill_driver.py")
    command = [sys.executable, str(driver), str(run), str(tmp_path), "8", str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    finished = [Path(line) for line in done.stdout.split()]
    assert len(finished) > 1
    for out in finished:
        assert tree(out) == tree(whole)


def test_release_is_of_the_moment_it_began(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", images=3)
    export_run(run, tmp_path / "before", ALL)
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="stop here"):
        export_run(run, out, ALL, _stop_at("writing parquet"))

    async def close_one() -> None:
        journal = await asyncio.to_thread(Journal.open, run)
        async with journal:
            pending = next(journal.reader.tasks(state=TaskState.PENDING))
            await journal.close_task(pending.id, TaskState.FAILED, 0, "later")

    asyncio.run(close_one())
    summary = export_run(run, out, ALL)
    assert summary.resumed
    assert tree(out) == tree(tmp_path / "before")
    with pytest.raises(InputError, match="contains another release"):
        export_run(run, out, ALL)


def test_other_options_do_not_continue(small_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        export_run(small_run, out, ALL, _stop_at("writing webdataset"))
    before = tree(out)
    with pytest.raises(InputError, match="other options"):
        export_run(small_run, out, replace(ALL, layouts=("parquet",)))
    assert {name for name in tree(out) if not name.startswith(".export")} == {
        name for name in before if not name.startswith(".export")
    }


def test_foreign_folder_is_refused(small_run: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="choose an empty folder"):
        export_run(small_run, tmp_path, ALL)
    assert tree(tmp_path).keys() == {"notes.txt"}


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
    assert all(
        "DUA 7" in (out / name).read_text() for name in ("README.md", "DATASHEET.md", "LICENSES/parts.json")
    )
    assert verify_release(out, against=run).problems == ()
    crosswalk = json.loads((run / CROSSWALK).read_text())["ids"]
    with JournalReader.open(run) as reader:
        ids = {row.task.image_id for row in reader.tasks()}
        groups = {image.group for image in reader.images() if image.group}
        hashes = {image.source_sha256 for image in reader.images()}
    assert {key.split("/", 1)[1] for key in crosswalk} >= ids
    for path in out.rglob("*"):
        data = path.read_bytes() if path.is_file() and ".export" not in path.parts else b""
        for name in (*ids, *groups, *hashes):
            assert name.encode() not in data, path
            assert name.replace(" ", "_") not in str(path)
    export_run(run, tmp_path / "again", options)
    assert tree(tmp_path / "again") == tree(out)


def _stop_at(stage: str):
    def told(name: str) -> None:
        if name == stage:
            raise RuntimeError("stop here")

    return told


def test_full_disk_is_one_line_and_can_be_continued(small_run: Path, release: Path, tmp_path: Path) -> None:
    """In the middle of a shard."""
    out = tmp_path / "out"
    with ExitStack() as limited:

        def fill(stage: str) -> None:
            if stage == "writing webdataset":
                limited.enter_context(full_disk(30_000))

        with pytest.raises(InputError, match="the disk is full"):
            export_run(small_run, out, ALL, fill)
    assert export_run(small_run, out, ALL).resumed
    assert tree(out) == tree(release)
