"""Originals that a release carries, found by hash."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from plantain.files.installing import install_line
from plantain.files.opening import read_inside
from plantain.pixels.decode import check_header
from plantain.records import InputError

if TYPE_CHECKING:
    import pyarrow as pa

RECORDS = "trajectories/trajectories.jsonl"
TABLE, INDEX = "data/originals", "originals/originals.jsonl"

_GROUPS_HELD = 2
"""Row groups of a table in memory: rows come in the order of the tasks, as pairs are read."""


class ReleaseOriginals:
    """Originals of one release, in its tables or its tree."""

    def __init__(self, release: Path) -> None:
        self._release = release
        self._groups: OrderedDict[tuple[Path, int], pa.ChunkedArray] = OrderedDict()

    @staticmethod
    def recognised(folder: Path) -> bool:
        """Whether the folder is a release, or a part of one."""
        return (folder / "data").is_dir() or any(
            (folder / name).is_file() for name in ("manifest.parquet", RECORDS)
        )

    def has(self, sha256: str) -> bool:
        """Whether the release has this original."""
        return sha256 in self._places

    def read(self, sha256: str) -> bytes:
        """Its bytes. Raises InputError when they are not what the hash says, or no picture."""
        place = self._places[sha256]
        data = read_inside(self._release, place) if isinstance(place, Path) else self._cell(*place)
        if hashlib.sha256(data).hexdigest() != sha256:
            where = place if isinstance(place, Path) else place[0]
            raise InputError(f"{where}: the original {sha256[:12]}… is damaged")
        check_header(data, sha256)
        return data

    @cached_property
    def _places(self) -> dict[str, Path | tuple[Path, int, int]]:
        """Where each lies: a file, or (table, row group, row in it)."""
        places: dict[str, Path | tuple[Path, int, int]] = {}
        for path in sorted((self._release / TABLE).glob("*.parquet")):
            places |= _rows(path)
        index = self._release / INDEX
        if index.is_file():
            for line in index.read_bytes().splitlines():
                row = orjson.loads(line)
                places[str(row["sha256"])] = self._release / str(row["path"])
        return places

    def _cell(self, path: Path, group: int, row: int) -> bytes:
        import pyarrow.parquet as pq

        key = (path, group)
        if key not in self._groups:
            with pq.ParquetFile(path) as table:
                self._groups[key] = table.read_row_group(group, columns=["image"])["image"]
            while len(self._groups) > _GROUPS_HELD:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        return bytes(self._groups[key][row].as_py()["bytes"])


def _rows(path: Path) -> dict[str, tuple[Path, int, int]]:
    """Where the pictures of a table stand. Raises InputError."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(f"reading a release needs pyarrow: {install_line('release')}") from error
    try:
        with pq.ParquetFile(path) as table:
            return {
                str(sha256): (path, group, row)
                for group in range(table.num_row_groups)
                for row, sha256 in enumerate(
                    table.read_row_group(group, columns=["sha256"])["sha256"].to_pylist()
                )
            }
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a table of a release: {error}") from error
