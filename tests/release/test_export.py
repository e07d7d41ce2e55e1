"""Exporting: the same bytes every time, whatever happens on the way, and refusals that change nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from plantain.cli import main
from plantain.journal import Journal, JournalReader
from plantain.records import InputError, Licence, TaskState
from plantain.release.export import export_run
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.naming import CROSSWALK
from plantain.release.plan import ExportOptions
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
    command = [sys.executable, str(driver), str(run), str(tmp_path), "14", str(SEED)]
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
        export_run(run, out, ALL, _stop_at("parquet"))

    async def close_one() -> None:
        journal = await asyncio.to_thread(Journal.open, run)
        async with journal:
            pending = next(journal.reader.tasks(state=TaskState.PENDING))
            await journal.close_task(pending.id, TaskState.FAILED, 0, "later")

    asyncio.run(close_one())
    summary = export_run(run, out, ALL)
    assert summary.resumed
    assert tree(out) == tree(tmp_path / "before")
    with pytest.raises(InputError, match="of another state"):
        export_run(run, out, ALL)


def test_other_options_do_not_continue(small_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        export_run(small_run, out, ALL, _stop_at("webdataset"))
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


def test_credentialed_source_needs_the_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", images=4, licence=Licence.CREDENTIALED)
    out = tmp_path / "out"
    assert main(["export", str(run), "--to", str(out), "--layout", "parquet,med-banana"]) == 2
    assert "--redistribution-approved" in capsys.readouterr().err
    assert not (run / CROSSWALK).exists() and not out.exists()
    options = ExportOptions(("med-banana", "parquet", "webdataset"), redistribution_approved="DUA 7")
    export_run(run, out, options)
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
    """A limit on file size stands in for the disk's: writing fails in the same way, in the middle of a shard."""
    out = tmp_path / "out"
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from plantain.release.export import export_run\n"
        "from plantain.release.layouts.contract import LAYOUTS\n"
        "from plantain.release.plan import ExportOptions\n"
        "from plantain.records import InputError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.dont_write_bytecode = True\n"  # the limit would cut it short
        "def told(stage):\n"
        "    if stage == 'webdataset':\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
        "try:\n"
        f"    export_run(Path({str(small_run)!r}), Path({str(out)!r}),"
        " ExportOptions(LAYOUTS, shard_bytes=60_000, licences=('CC-BY-4.0',)), told)\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "the disk is full" in done.stdout, done.stderr
    assert export_run(small_run, out, ALL).resumed
    assert tree(out) == tree(release)
