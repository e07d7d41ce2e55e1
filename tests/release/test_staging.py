"""What an unfinished release remembers of the files that it wrote."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from plantain.release.plan import ReleaseFile
from plantain.release.staging import HashingFile, Staging


def _embedded(row: int) -> ReleaseFile:
    return ReleaseFile("", f"{row:064x}", 5, "success", task="t", generation=0, round=1, row=row)


def test_embedded_images_leave_memory_as_they_come(tmp_path: Path) -> None:
    staging = Staging(tmp_path)

    def fill(file: HashingFile) -> Iterator[ReleaseFile]:
        for row in range(100):
            file.write(b"bytes")
            yield _embedded(row)
            ((stored,),) = staging.connection.execute("SELECT COUNT(*) FROM file")
            assert stored == row + 1

    staging.write("data/one.parquet", "table", fill)
    whole, *inside = staging.files()
    assert (whole.path, whole.bytes, whole.row) == ("data/one.parquet", 500, None)
    assert [(image.path, image.row) for image in inside] == [("data/one.parquet", n) for n in range(100)]
    staging.close()


def test_a_file_that_fails_half_way_leaves_none_of_its_images_behind(tmp_path: Path) -> None:
    staging = Staging(tmp_path)

    def fill(file: HashingFile) -> Iterator[ReleaseFile]:
        yield _embedded(0)
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        staging.write("data/one.parquet", "table", fill)
    assert list(staging.files()) == []
    assert not staging.is_done("data/one.parquet")
    staging.record([ReleaseFile("data/two.parquet", "0" * 64, 1, "table")])
    assert staging.is_done("data/two.parquet")
    staging.close()


def test_an_error_that_the_disk_tells_once_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Syncing goes on while a file is written, and Linux tells of a lost page to one caller only."""
    staging = Staging(tmp_path)
    told: list[int] = []

    def fsync(descriptor: int) -> None:
        told.append(descriptor)
        if len(told) == 1:
            raise OSError(errno.EIO, "Input/output error")

    def fill(file: HashingFile) -> Iterator[ReleaseFile]:
        for row in range(3):
            file.write(b"bytes")
            yield _embedded(row)

    monkeypatch.setattr("plantain.release.staging._SYNCED_AT_ONCE", 1)
    monkeypatch.setattr("plantain.release.staging.os.fsync", fsync)
    with pytest.raises(OSError, match="Input/output"):
        staging.write("data/one.parquet", "table", fill)
    assert not staging.is_done("data/one.parquet")
    staging.close()
