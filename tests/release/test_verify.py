from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plantain.cli import main
from plantain.journal import JournalReader
from plantain.records import InputError
from plantain.release.manifest import MANIFEST
from plantain.release.sums import SUMS
from plantain.release.verify import Proof, verify_release

from .resealing import entries_of, reseal

SEED = int(os.environ.get("PLANTAIN_TAMPER_SEED", "20261121"))


@pytest.fixture
def copy(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "copy"))


def named(proof: Proof) -> set[str]:
    return {problem.path for problem in proof.problems}


def kinds(proof: Proof) -> set[tuple[str, str]]:
    return {(problem.path, problem.kind) for problem in proof.problems}


def test_verify_of_an_untouched_release_finds_nothing(release: Path, small_run: Path) -> None:
    proof = verify_release(release, against=small_run, pixels=True)
    assert proof.problems == ()
    assert proof.files == sum(path.is_file() for path in release.rglob("*"))
    with JournalReader.open(small_run) as reader:
        query = (
            "SELECT count(*) FROM attempt a JOIN task t ON t.id = a.task "
            "WHERE edited NOTNULL AND state <> 'pending'"
        )
        assert proof.images == reader.connection.execute(query).fetchone()[0]


# --- tampering ------------------------------------------------------------------------------------


class Tampering:
    """Changes one thing in a release and returns the paths that `verify` must name."""

    def __init__(self, out: Path, rng: random.Random, left: list[str]) -> None:
        self.out, self.rng, self.left = out, rng, left

    def take(self) -> Path:
        return self.out / self.left.pop()

    def flip(self) -> set[str]:
        path = self.take()
        data = bytearray(path.read_bytes())
        place = self.rng.randrange(len(data))
        data[place] ^= 1 << self.rng.randrange(8)
        path.write_bytes(data)
        return {self.name(path)}

    def delete(self) -> set[str]:
        path = self.take()
        path.unlink()
        return {self.name(path)}

    def swap(self) -> set[str]:
        one = self.take()
        other = next(
            self.out / name for name in self.left if (self.out / name).read_bytes() != one.read_bytes()
        )
        self.left.remove(self.name(other))
        held = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(held)
        return {self.name(one), self.name(other)}

    def add(self) -> set[str]:
        path = self.take()
        new = path.with_name(f"added-{self.rng.randrange(10**9)}{path.suffix}")
        new.write_bytes(path.read_bytes() if self.rng.random() < 0.5 else b"")
        return {self.name(new)}

    def rename(self) -> set[str]:
        path = self.take()
        new = path.with_name(f"renamed-{self.rng.randrange(10**9)}{path.suffix}")
        path.rename(new)
        return {self.name(path), self.name(new)}

    def any(self) -> set[str]:
        return self.rng.choice(
            [self.flip, self.flip, self.flip, self.delete, self.swap, self.add, self.rename]
        )()

    def name(self, path: Path) -> str:
        return path.relative_to(self.out).as_posix()


def test_verify_names_every_one_of_180_changes_to_files(release: Path, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    files = [
        path.relative_to(release).as_posix()
        for path in sorted(release.rglob("*"))
        if path.is_file() and path.name not in (SUMS, MANIFEST) and path.stat().st_size
    ]
    for trial in range(10):
        out = Path(shutil.copytree(release, tmp_path / str(trial)))
        left = rng.sample(files, len(files))
        tampering = Tampering(out, rng, left)
        expected = set[str]().union(*(tampering.any() for _ in range(18)))
        missed = expected - named(verify_release(out))
        assert not missed, f"seed {SEED}, trial {trial}"
        shutil.rmtree(out)


def test_verify_names_every_one_of_20_changes_to_sums_and_manifest(release: Path, copy: Path) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED + 1)
    for trial in range(20):
        name = (SUMS, MANIFEST)[trial % 2]
        tampering = Tampering(copy, rng, [name])
        expected = rng.choice([tampering.flip, tampering.flip, tampering.delete, tampering.rename])()
        missed = expected - named(verify_release(copy))
        assert not missed, f"seed {SEED}, trial {trial}"
        for path in expected:
            (copy / path).unlink(missing_ok=True)
        shutil.copy2(release / name, copy / name)
    assert verify_release(copy).ok


def test_verify_names_sums_whatever_bit_of_a_line_is_flipped(release: Path, copy: Path) -> None:
    whole = (release / SUMS).read_bytes()
    start = whole.index(b"\n") + 1
    end = whole.index(b"\n", start)
    # Bit 5 turns a hexadecimal letter into its capital, which other tools take for the same hash.
    for place, bit in [*((place, 5) for place in range(start, end, 6)), (start + 64, 0), (end, 0), (end, 7)]:
        data = bytearray(whole)
        data[place] ^= 1 << bit
        (copy / SUMS).write_bytes(data)
        assert SUMS in named(verify_release(copy)), (place, bit)


def test_verify_tells_a_changed_sums_file_from_a_changed_file(copy: Path) -> None:
    lines = (copy / SUMS).read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.endswith(".jpeg\n"))
    lines[at] = "0" * 64 + lines[at][64:]
    (copy / SUMS).write_text("".join(lines))
    assert kinds(verify_release(copy)) == {(SUMS, "sums")}


def test_verify_names_links_and_empty_folders_and_follows_nothing(copy: Path) -> None:
    (copy / "README.md").unlink()
    (copy / "README.md").symlink_to("/etc/hostname")
    (copy / "data" / "nothing").mkdir()
    (copy / "pipe").mkdir()
    os.mkfifo(copy / "pipe" / "fifo")
    found = kinds(verify_release(copy))
    assert {("README.md", "link"), ("data/nothing", "extra"), ("pipe/fifo", "extra")} <= found


def test_verify_names_files_whose_names_are_not_text(copy: Path) -> None:
    (Path(os.fsdecode(os.fsencode(copy) + b"/caf\xe9"))).write_bytes(b"x")
    assert ("caf\\udce9", "extra") in kinds(verify_release(copy))


def test_verify_says_that_an_export_did_not_finish(copy: Path) -> None:
    (copy / ".export").mkdir()
    assert (".export", "unfinished") in kinds(verify_release(copy))


# --- lies that carry right checksums --------------------------------------------------------------


def test_verify_finds_an_embedded_image_that_is_another(copy: Path) -> None:
    path = next(
        path for path in (copy / "data").glob("[sf]*/*.parquet") if pq.read_metadata(path).num_rows > 1
    )
    assert path.parent.name in ("success", "failed", "superseded")
    table = pq.read_table(path)
    images = table["image"].to_pylist()
    images[0]["bytes"] = images[-1]["bytes"]
    changed = table.set_column(
        table.schema.get_field_index("image"),
        table.schema.field("image"),
        pa.array(images, table.schema.field("image").type),
    )
    pq.write_table(changed, path)
    reseal(copy)
    name = path.relative_to(copy).as_posix()
    assert kinds(verify_release(copy)) == {(name, "image"), ("croissant.json", "reference")}


def test_verify_finds_rows_that_were_dropped(copy: Path) -> None:
    path = next((copy / "data" / "trajectories").glob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    reseal(copy)
    assert (path.relative_to(copy).as_posix(), "rows") in kinds(verify_release(copy))


def test_verify_finds_columns_that_were_renamed(copy: Path) -> None:
    path = next((copy / "data" / "success").glob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.rename_columns([f"{name}_" for name in table.column_names]), path)
    reseal(copy)
    assert (path.relative_to(copy).as_posix(), "schema") in kinds(verify_release(copy))


def test_verify_finds_a_task_that_was_taken_out_of_the_records(copy: Path) -> None:
    path = copy / "trajectories" / "trajectories.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    gone = next(i for i, line in enumerate(lines) if json.loads(line)["state"] == "success")
    path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    reseal(copy, rows={"trajectories/trajectories.jsonl": len(lines) - 1})
    found = {kind for _, kind in kinds(verify_release(copy))}
    assert {"count", "reference"} <= found


def test_verify_finds_a_record_without_its_file(copy: Path) -> None:
    gone = next(copy.glob("*-edit/*/*.jpeg"))
    gone.unlink()
    reseal(copy)
    problems = verify_release(copy).problems
    assert {problem.kind for problem in problems} == {"reference"}
    assert any(gone.name in problem.detail for problem in problems)


def test_verify_finds_a_licence_that_may_not_be_given(copy: Path) -> None:
    records = copy / "trajectories" / "trajectories.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"licence":"open"', b'"licence":"credentialed"'))
    reseal(copy)
    assert ("LICENSES/parts.json", "licence") in kinds(verify_release(copy))


def test_verify_finds_pixels_that_were_not_judged(copy: Path) -> None:
    entries = entries_of(copy)
    at = next(
        i for i, (entry, _) in enumerate(entries) if entry.path.endswith(".jpeg") and entry.pixel_sha256
    )
    entries[at] = (replace(entries[at][0], pixel_sha256="0" * 64), None)
    reseal(copy, entries=entries)
    assert verify_release(copy).ok
    assert kinds(verify_release(copy, pixels=True)) == {(entries[at][0].path, "pixels")}


# --- against the run ------------------------------------------------------------------------------


def test_verify_against_the_run_finds_a_verdict_that_was_turned(copy: Path, small_run: Path) -> None:
    records = copy / "trajectories" / "trajectories.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"opinion":true' in line)
    lines[at] = lines[at].replace(b'"opinion":true', b'"opinion":false', 1)
    records.write_bytes(b"".join(lines))
    reseal(copy)
    assert {problem.kind for problem in verify_release(copy).problems} <= {
        "reference"
    }  # croissant's hash of the file
    assert ("trajectories/trajectories.jsonl", "against") in kinds(verify_release(copy, against=small_run))


# --- hostile --------------------------------------------------------------------------------------


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


# --- resuming -------------------------------------------------------------------------------------


def test_verify_goes_on_where_it_was(copy: Path, tmp_path: Path) -> None:
    kept = tmp_path / "checked"
    first = verify_release(copy, resume=kept)
    listed = first.files - 2  # SHA256SUMS and the manifest are read every time
    assert first.ok and first.skipped == 0
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[: len(lines) // 2]) + b'["cut sho')
    again = verify_release(copy, resume=kept)
    assert again.ok and 0 < again.skipped < listed
    assert verify_release(copy, resume=kept).skipped == listed
    assert verify_release(copy, resume=kept, pixels=True).skipped == 0


def test_verify_checks_again_what_was_written_since(copy: Path, tmp_path: Path) -> None:
    kept = tmp_path / "checked"
    verify_release(copy, resume=kept)
    path = next(copy.glob("*-edit/*/*.jpeg"))
    told = path.stat()
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))  # the time of change cannot be set back
    assert path.relative_to(copy).as_posix() in named(verify_release(copy, resume=kept))


def test_verify_keeps_its_notes_out_of_the_release(copy: Path) -> None:
    with pytest.raises(InputError, match="must not lie in the release"):
        verify_release(copy, resume=copy / "checked")


# --- the command ----------------------------------------------------------------------------------


def test_verify_command_prints_one_line_and_json(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(release)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 and lines[0].startswith("OK: ")
    assert main(["verify", str(release), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is True and told["problems"] == [] and told["files"] > 0


def test_verify_command_names_the_first_ten_problems(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = sorted(copy.glob("*-edit*/*/*.jpeg"))[:12]
    for path in gone:
        path.unlink()
    assert main(["verify", str(copy)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("NOT OK: 12 problems")
    assert len(lines) == 12 and all("missing" in line for line in lines[1:11]) and "2 more" in lines[11]
    assert main(["verify", str(copy), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [problem["path"] for problem in told["problems"]] == sorted(str(p.relative_to(copy)) for p in gone)
    assert set(told["problems"][0]) == {"path", "kind", "detail"}


def test_verify_command_of_what_is_no_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path)]) == 2
    assert "no release" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "nothing")]) == 2
