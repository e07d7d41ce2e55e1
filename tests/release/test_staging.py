"""What an unfinished release remembers of the files that it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plantain.release.plan import ReleaseFile
from plantain.release.staging import HashingFile, Staging


def _embedded(row: int) -> ReleaseFile:
    return ReleaseFile("", f"{row:064x}", 5, "success", task="t", generation=0, round=1, row=row)


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
