"""A release as the first format wrote it still opens: verified, imported, loaded, and handed on in today's format.

`format-1.tar.xz` was written by the code of 22 November 2026 (commit d208d8e), the last before releases held originals:
four images of 32 x 32 pixels of a retina that scikit-image has, in three layouts.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from plantain.cli import main
from plantain.journal import JournalReader
from plantain.release.proof.manifest import FORMAT, ManifestReader
from plantain.release.proof.verify import verify_release


@pytest.fixture
def first(tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).with_name("format-1.tar.xz")) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "format-1"


def test_it_verifies_and_a_changed_byte_is_found(first: Path):
    found = ManifestReader(first / "manifest.parquet")
    assert found.format == 1 < FORMAT
    found.close()
    proof = verify_release(first, pixels=True)
    assert proof.ok, proof.problems
    assert proof.images == 14  # attempts with a picture in the journal that it was made of
    sums = hashlib.sha256((first / "SHA256SUMS").read_bytes()).hexdigest()
    assert proof.release == sums == "230d5fd9ec200d4b1b9484c3c96b6ec8a7c13afd7a478443c9fd128538f91489"
    table = next((first / "data" / "success").glob("*.parquet"))
    table.write_bytes(table.read_bytes().replace(b"JFIF", b"JFIX", 1))
    assert [problem.path for problem in verify_release(first).problems] == [str(table.relative_to(first))]


def test_it_is_imported_and_leaves_again_in_todays_format(first: Path, tmp_path: Path, capsys):
    assert main(["import", str(first), "--run", str(tmp_path / "run"), "--json"]) == 0
    with JournalReader.open(tmp_path / "run") as reader:
        states = {row.id: row.state.value for row in reader.tasks()}
    tables = [pq.read_table(path) for path in (first / "data" / "trajectories").glob("*.parquet")]
    old = {row["task_id"]: row["outcome"] for table in tables for row in table.to_pylist()}
    assert set(states) == set(old) and len(old) == 8  # closed tasks of the journal that it was made of
    capsys.readouterr()
    again = tmp_path / "again"
    assert main(["export", str(tmp_path / "run"), "--to", str(again), "--layout", "parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert verify_release(again).ok
    was, now = (
        {
            row["task_id"]: row
            for path in (root / "data/success").glob("*.parquet")
            for row in pq.read_table(path).to_pylist()
        }
        for root in (first, again)
    )
    assert was.keys() == now.keys() and was
    for task, row in was.items():  # what the first format said is said again, word for word and byte for byte
        assert {name: now[task][name] for name in row} == row
