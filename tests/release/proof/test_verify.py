from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fakes.commands import json_of, printed, refused
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.release.proof.manifest import MANIFEST, SUMS, read_sums
from plantain.release.proof.verify import verify_release
from release.proofs import kinds
from release.resealing import entries_of, reseal
from release.runs import tree


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


def test_files_that_a_download_and_a_mac_leave_are_a_remark(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`hf download --local-dir` writes .cache/huggingface; the Hub, Finder, Windows and Linux add theirs."""
    for name in (
        ".Trash-1000/files/a.png",
        "README.md:Zone.Identifier",
        ".cache/huggingface/download/README.md.metadata",
        ".gitattributes",
        ".DS_Store",
        "data/._train",
    ):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(b"\x00\x05\x16\x07")
    shown = printed("verify", copy)
    assert shown.startswith("OK: ")
    assert shown.splitlines()[0].endswith(
        "not of the release, and not checked: .DS_Store, .Trash-1000, .cache, .gitattributes, "
        "README.md:Zone.Identifier, …"
    )
    (copy / "notes.txt").write_text("mine")
    assert main(["verify", str(copy)]) == 1
    assert "notes.txt: extra: is not a file of this release" in capsys.readouterr().out


# --- forged facts with right checksums ------------------------------------------------------------


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
    pq.write_table(changed, path, compression="none", use_dictionary=False)
    reseal(copy)
    name = path.relative_to(copy).as_posix()
    assert kinds(verify_release(copy)) == {(name, "image")}


def test_verify_finds_rows_that_were_dropped(copy: Path) -> None:
    path = next((copy / "data" / "trajectories").glob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    reseal(copy)
    assert (path.relative_to(copy).as_posix(), "rows") in kinds(verify_release(copy))


def test_verify_finds_a_task_that_was_taken_out_of_the_records(copy: Path) -> None:
    path = copy / "trajectories" / "trajectories.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    gone = next(i for i, line in enumerate(lines) if json.loads(line)["state"] == "success")
    path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    reseal(copy, rows={"trajectories/trajectories.jsonl": len(lines) - 1})
    found = {kind for _, kind in kinds(verify_release(copy))}
    assert {"count", "reference"} <= found


def test_verify_finds_a_licence_that_the_source_forbids(copy: Path) -> None:
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


def test_verify_against_the_run_finds_a_reversed_verdict(
    copy: Path, small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = copy / "trajectories" / "trajectories.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"opinion":true' in line)
    lines[at] = lines[at].replace(b'"opinion":true', b'"opinion":false', 1)
    records.write_bytes(b"".join(lines))
    reseal(copy)
    assert verify_release(copy).ok
    assert ("trajectories/trajectories.jsonl", "against") in kinds(verify_release(copy, against=small_run))
    assert main(["verify", str(copy), "--against", str(small_run)]) == 1
    again = f"export again: plantain export {small_run} --to NEW_RELEASE --licence TERMS\n"
    assert capsys.readouterr().out.endswith(again)


# --- the command ----------------------------------------------------------------------------------


def test_verify_command_prints_one_line_and_json(release: Path) -> None:
    lines = printed("verify", release).splitlines()
    assert lines[0].startswith("OK: ") and lines[1:] == [f"next: plantain view {release}"]
    got = json_of("verify", release)
    assert got["ok"] is True and got["problems"] == [] and got["files"] > 0


def test_verify_command_names_the_first_ten_problems(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = sorted(copy.glob("*-edit*/*/*.jpeg"))[:12]
    for path in gone:
        path.unlink()
    assert main(["verify", str(copy)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("NOT OK: 12 problems")
    assert len(lines) == 12 and all("missing" in line for line in lines[1:11]) and "2 more" in lines[11]
    assert main(["verify", str(copy), "--json"]) == 1
    got = json.loads(capsys.readouterr().out)
    assert [problem["path"] for problem in got["problems"]] == sorted(str(p.relative_to(copy)) for p in gone)
    assert set(got["problems"][0]) == {"path", "kind", "detail"}


def test_verify_command_refuses_a_folder_without_a_release(tmp_path: Path) -> None:
    assert "not a release" in refused("verify", tmp_path)
    assert main(["verify", str(tmp_path / "nothing")]) == 2


def test_manifest_lists_every_file_with_its_size_and_hash(release: Path) -> None:
    listed = {
        entry.path: (entry.sha256, entry.bytes) for entry, _ in entries_of(release) if not entry.embedded
    }
    there = {name: (sha256, (release / name).stat().st_size) for name, sha256 in tree(release).items()}
    del there[MANIFEST], there[SUMS]
    assert listed == there


def test_sums_satisfy_sha256sum_and_cover_everything(release: Path) -> None:
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", SUMS], cwd=release, check=True)
    listed = {fields[2] for fields in read_sums(release / SUMS) if len(fields) == 3}
    assert listed == tree(release).keys() - {SUMS}
