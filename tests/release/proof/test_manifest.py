from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from plantain.journal import JournalReader
from plantain.pixels.fingerprint import pixel_sha256
from plantain.release.export import export_run
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions
from plantain.release.proof.inventory import why_unsafe
from plantain.release.proof.manifest import MANIFEST, SCHEMA, SUMS, ManifestReader, read_sums
from release.resealing import entries_of
from release.runs import tree


def test_manifest_lists_every_file_with_its_size_and_hash(release: Path) -> None:
    listed = {
        entry.path: (entry.sha256, entry.bytes) for entry, _ in entries_of(release) if not entry.embedded
    }
    there = {name: (sha256, (release / name).stat().st_size) for name, sha256 in tree(release).items()}
    del there[MANIFEST], there[SUMS]
    assert listed == there


def test_manifest_is_read_by_pyarrow_and_is_in_order(release: Path) -> None:
    table = pq.read_table(release / MANIFEST)
    assert table.schema.names == SCHEMA.names
    rows = table.to_pylist()
    order = [(row["path"], -1 if row["row"] is None else row["row"], row["member"] or "") for row in rows]
    assert order == sorted(order) and len(set(order)) == len(order)


def test_manifest_gives_the_pixel_hash_of_every_edited_image(release: Path, small_run: Path) -> None:
    images = [entry for entry, _ in entries_of(release) if entry.is_edit]
    with JournalReader.open(small_run) as reader:
        for entry in images:
            assert entry.pixel_sha256 == pixel_sha256(reader.read_blob(entry.sha256))


def test_manifest_counts_rows(release: Path) -> None:
    for entry, rows in entries_of(release):
        if entry.path.endswith(".parquet") and not entry.embedded:
            assert rows == pq.read_metadata(release / entry.path).num_rows
        if entry.path.endswith(".jsonl"):
            assert rows == len((release / entry.path).read_bytes().splitlines())


def test_sums_satisfy_sha256sum_and_cover_everything(release: Path) -> None:
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", SUMS], cwd=release, check=True)
    listed = {told[2] for told in read_sums(release / SUMS) if len(told) == 3}
    assert listed == tree(release).keys() - {SUMS}


def test_what_stands_beside_the_data_is_the_same_every_time(
    release: Path, small_run: Path, tmp_path: Path
) -> None:
    export_run(
        small_run, tmp_path / "again", ExportOptions(LAYOUTS, shard_bytes=60_000, licences=("CC-BY-4.0",))
    )
    assert tree(tmp_path / "again") == tree(release)


def test_manifest_of_a_tree_without_parquet(small_run: Path, tmp_path: Path) -> None:
    export_run(small_run, tmp_path / "tree", ExportOptions(("med-banana",), licences=("CC-BY-4.0",)))
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", SUMS], cwd=tmp_path / "tree", check=True)


def test_by_file_puts_images_with_the_file_that_holds_them(release: Path) -> None:
    reader = ManifestReader(release / MANIFEST)
    shards = {file.path: inside for file, _, inside in reader.by_file() if inside}
    reader.close()
    assert shards and all({image.path for image in inside} == {path} for path, inside in shards.items())


@pytest.mark.parametrize("path", ["a", "a/b.c", "ODIR-5K-edit/AMD/x.jpeg", "naïve/ü.json"])
def test_plain_paths_are_safe(path: str) -> None:
    assert why_unsafe(path) is None


@pytest.mark.parametrize(
    "path", ["", "/a", "../a", "a/..", "a//b", "a/", "./a", "a\\b", "C:/a", "a\x00", "a\nb"]
)
def test_paths_that_lead_elsewhere_are_not(path: str) -> None:
    assert why_unsafe(path)


def test_sums_file_is_read_line_by_line_with_what_is_wrong(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"").hexdigest()
    lines = [
        f"{digest}  b",
        f"{digest.upper()}  c",
        f"{digest} d",
        f"{digest}  a",
        f"{digest}  ../x",
        f"{digest}  e",
    ]
    path = tmp_path / "sums"
    path.write_bytes(
        "\n".join(lines).encode() + b"\n" + digest.encode() + b"  \xff\n" + digest.encode() + b"  f"
    )
    told = list(read_sums(path))
    assert [entry[0] for entry in told if len(entry) == 2] == [2, 3, 4, 5, 7, 8]
    assert [entry[2] for entry in told if len(entry) == 3] == ["b", "e"]
    shutil.rmtree(tmp_path)
