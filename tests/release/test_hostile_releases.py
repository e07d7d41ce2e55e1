"""Releases made to do harm: paths that lead out, false counts, broken files; each is a problem, none a crash."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fakes.commands import refused
from plantain.cli import main
from plantain.records import InputError
from plantain.release.importing.importing import import_release
from plantain.release.proof.manifest import MANIFEST, SUMS
from plantain.release.proof.verify import verify_release
from release.proofs import SEED, named
from release.resealing import entries_of, reseal, seal_sums


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a\\b", "a\nb"])
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


def test_forged_text_is_printed_in_one_line_without_terminal_commands(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\x1b]0;title\x07\nOK: verified"
    (copy / "wds" / f"{name}.jpeg").touch()
    assert main(["verify", str(copy)]) == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and len([line for line in shown.splitlines() if "verified" in line]) == 1
    assert not any(line.startswith("OK") for line in shown.splitlines())
    records = copy / "trajectories" / "trajectories.jsonl"
    first, *rest = records.read_bytes().splitlines(keepends=True)
    forged = [(field, name, f"{field}: ") for field in ("task_id", "finding", "modality", "split")]
    forged += [(field, -5, "generation or round: -5 is negative") for field in ("generation", "round")]
    forged.append(("task_id", "../../out", "task_id: "))
    for field, value, complaint in forged:
        records.write_bytes(b"".join([orjson.dumps({**orjson.loads(first), field: value}) + b"\n", *rest]))
        shown = refused("import", copy, "--run", tmp_path / "run")
        assert complaint in shown and "\x1b" not in shown
        assert not (tmp_path / "run").exists()


def test_a_number_that_is_not_finite_is_refused(copy: Path, tmp_path: Path) -> None:
    records = copy / "trajectories" / "trajectories.jsonl"
    changed = re.sub(rb'"value":[0-9.]+', b'"value":NaN', records.read_bytes(), count=1)
    assert changed != records.read_bytes()
    records.write_bytes(changed)
    with pytest.raises(InputError, match=r"line [0-9]+: "):
        import_release(copy, tmp_path / "run")


def test_facts_of_another_type_are_refused_in_one_line(copy: Path, tmp_path: Path) -> None:
    whole = (copy / "run.json").read_bytes()
    for field, value in (("models", {"edit": 3}), ("frozen", [1]), ("terms", {"a": 1}), ("name", "a\nb")):
        document = orjson.loads(whole)
        document["facts"][field] = value
        (copy / "run.json").write_bytes(orjson.dumps(document))
        shown = refused("import", copy, "--run", tmp_path / "run")
        assert "run.json: facts: " in shown and field in shown
        assert not (tmp_path / "run").exists()


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def garbage(path: Path) -> None:
    path.write_bytes(b"PAR1" + random.Random(SEED).randbytes(5000) + b"PAR1")


@pytest.mark.parametrize("spoil", [truncated, garbage])
def test_verify_of_a_hostile_manifest_is_a_problem_and_no_crash(
    copy: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(copy / MANIFEST)
    (copy / SUMS).unlink()
    proof = verify_release(copy)
    assert not proof.ok and {MANIFEST, SUMS} <= named(proof)
    seal_sums(copy)
    assert MANIFEST in named(verify_release(copy))


@pytest.mark.parametrize("spoil", [truncated, garbage])
@pytest.mark.parametrize("pattern", ["data/success/*.parquet", "wds/success*.tar"])
def test_verify_of_a_hostile_shard_is_a_problem_and_no_crash(
    copy: Path, pattern: str, spoil: Callable[[Path], None]
) -> None:
    path = next(copy.glob(pattern))
    spoil(path)
    reseal(copy)
    assert path.relative_to(copy).as_posix() in named(verify_release(copy))


def refilled(path: Path, data: bytes, **options: object) -> None:
    """Replace every image of a shard by these bytes."""
    table = pq.read_table(path)
    cells = pa.array([{"bytes": data, "path": None}] * table.num_rows, table.schema.field("image").type)
    table = table.set_column(table.schema.get_field_index("image"), table.schema.field("image"), cells)
    pq.write_table(table, path, store_schema=False, **options)


def test_a_shard_that_unpacks_to_far_more_than_its_size_is_refused_unread(copy: Path, tmp_path: Path) -> None:
    # 40 MB of zeros in some kilobytes; with gigabytes in their place, reading it would take the whole machine.
    path = next(copy.glob("data/success/*.parquet"))
    refilled(path, bytes(40 << 20), compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 100_000
    reseal(copy)
    problems = [p for p in verify_release(copy).problems if p.path == path.relative_to(copy).as_posix()]
    assert [(p.kind, p.detail.endswith("refused unread")) for p in problems] == [("rows", True)]
    with pytest.raises(InputError, match=f"{path.name}: unpacks .* refused unread"):
        import_release(copy, tmp_path / "run")


def test_an_oversized_image_is_refused_undecoded(copy: Path, tmp_path: Path) -> None:
    # A few kilobytes that announce 400 million pixels, under the hash that the records name.
    entry = next(e for e, _ in entries_of(copy) if e.path.endswith(".jpeg") and e.role == "success")
    data = bytearray((copy / entry.path).read_bytes())
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = (20_000).to_bytes(2, "big") * 2
    forged = hashlib.sha256(data).hexdigest()
    (copy / entry.path).write_bytes(data)
    records = copy / "trajectories" / "trajectories.jsonl"
    records.write_text(records.read_text().replace(entry.sha256, forged))
    entries = [
        (replace(e, sha256=forged, bytes=len(data)) if e.path == entry.path else e, rows)
        for e, rows in entries_of(copy)
    ]
    reseal(copy, entries=entries)
    problems = [p for p in verify_release(copy, pixels=True).problems if p.path == entry.path]
    assert any(p.kind == "pixels" and "refused undecoded" in p.detail for p in problems), problems
    with pytest.raises(InputError, match="refused undecoded"):
        import_release(copy, tmp_path / "run")
