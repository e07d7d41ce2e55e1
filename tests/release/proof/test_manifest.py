from __future__ import annotations

import subprocess
from pathlib import Path

from plantain.journal import JournalReader
from plantain.pixels.decode import pixel_sha256
from plantain.release.proof.manifest import MANIFEST, SUMS, read_sums
from release.resealing import entries_of
from release.runs import tree


def test_manifest_lists_every_file_with_its_size_and_hash(release: Path) -> None:
    listed = {
        entry.path: (entry.sha256, entry.bytes) for entry, _ in entries_of(release) if not entry.embedded
    }
    there = {name: (sha256, (release / name).stat().st_size) for name, sha256 in tree(release).items()}
    del there[MANIFEST], there[SUMS]
    assert listed == there


def test_manifest_gives_the_pixel_hash_of_every_edited_image(release: Path, small_run: Path) -> None:
    images = [entry for entry, _ in entries_of(release) if entry.is_edit]
    with JournalReader.open(small_run) as reader:
        for entry in images:
            assert entry.pixel_sha256 == pixel_sha256(reader.read_blob(entry.sha256))


def test_sums_satisfy_sha256sum_and_cover_everything(release: Path) -> None:
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", SUMS], cwd=release, check=True)
    listed = {told[2] for told in read_sums(release / SUMS) if len(told) == 3}
    assert listed == tree(release).keys() - {SUMS}
