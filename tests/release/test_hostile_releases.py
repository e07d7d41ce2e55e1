"""Releases made to do harm: paths that lead out, false counts, broken files; each is a problem and no crash."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plantain.release.manifest import MANIFEST
from plantain.release.sums import SUMS
from plantain.release.verify import verify_release

from .proofs import SEED, named
from .resealing import entries_of, reseal


@pytest.mark.parametrize(
    "path",
    ["../../etc/passwd", "/etc/passwd", "a/../../b", "a//b", "./a", "a\\b", "C:/x", "a\nb", "", "x" * 2000],
)
def test_verify_follows_no_path_out_of_the_release(copy: Path, path: str) -> None:
    entries = entries_of(copy)
    entries.append((replace(entries[0][0], path=path, row=None, member=None), None))
    reseal(copy, entries=entries)
    assert MANIFEST in named(verify_release(copy))
    with (copy / SUMS).open("a", encoding="utf-8") as file:
        file.write(f"{'0' * 64}  {path}\n")
    found = named(verify_release(copy))
    assert SUMS in found
    assert not any(name.startswith(("/", "..")) for name in found)


def parquet_of_many_rows(path: Path) -> None:
    schema = pq.read_schema(path)
    count = 3_000_000
    columns = [pa.nulls(count, field.type) for field in schema]
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:
        writer.add_key_value_metadata({"plantain.release": "1"})
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def garbage(path: Path) -> None:
    path.write_bytes(b"PAR1" + random.Random(SEED).randbytes(5000) + b"PAR1")


def broken_inside(path: Path) -> None:
    data = bytearray(path.read_bytes())
    rng = random.Random(SEED)
    for place in range(10, len(data) - 2000, 40):
        data[place] = rng.randrange(256)
    path.write_bytes(data)


def without_entries(path: Path) -> None:
    pq.write_table(pa.table({"path": ["a"], "sha256": ["b"]}), path)


@pytest.mark.parametrize("spoil", [parquet_of_many_rows, truncated, garbage, broken_inside, without_entries])
def test_verify_of_a_hostile_manifest_is_a_problem_and_no_crash(
    copy: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(copy / MANIFEST)
    (copy / SUMS).unlink()
    proof = verify_release(copy)
    assert not proof.ok and {MANIFEST, SUMS} <= named(proof)
    from .resealing import seal_sums

    seal_sums(copy)
    assert MANIFEST in named(verify_release(copy))


@pytest.mark.parametrize("spoil", [truncated, garbage, broken_inside])
@pytest.mark.parametrize("pattern", ["data/success/*.parquet", "wds/success*.tar"])
def test_verify_of_a_hostile_shard_is_a_problem_and_no_crash(
    copy: Path, pattern: str, spoil: Callable[[Path], None]
) -> None:
    path = next(copy.glob(pattern))
    spoil(path)
    reseal(copy)
    assert path.relative_to(copy).as_posix() in named(verify_release(copy))


@pytest.mark.parametrize(
    "name",
    ["run.json", "croissant.json", "README.md", "LICENSES/parts.json", "trajectories/trajectories.jsonl"],
)
@pytest.mark.parametrize("data", [b"", b"[1, 2", b"{}\n", b"[[[]]]\n", b"\xff\xfe\x00", b'{"facts": 3}\n'])
def test_verify_of_hostile_documents_is_no_crash(copy: Path, name: str, data: bytes) -> None:
    (copy / name).write_bytes(data)
    reseal(copy)
    verify_release(copy)
