"""Originals in releases: permitted ones appear once in every layout; no byte of the others is in the release."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from plantain.bench.benchmark.from_build import benchmark_from_build
from plantain.catalogue.store import Catalogue
from plantain.journal import JournalReader
from plantain.records import Licence, TaskState
from plantain.release.export import export_run
from plantain.release.importing.importing import import_release
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from plantain.train.releases import ReleasePreferences, StoredOriginals
from release.resealing import reseal
from release.runs import every_byte, make_run, original, rows, source_image, tree

MIXED = {0: Licence.CREDENTIALED, 1: Licence.ATTRIBUTION, 2: Licence.UNKNOWN, 3: Licence.OPEN}
APPROVED = ExportOptions(LAYOUTS, shard_bytes=60_000, redistribution_approved="DUA 7")
NAMED = replace(APPROVED, licences=("CC-BY-4.0", "attribution=CC-BY-4.0"))


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def mixed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight images of four datasets, one of each licence class."""
    images = [
        replace(source_image(n, MIXED[n % 4]), dataset=MIXED[n % 4].value, id=f"eye {n}", group=None)
        for n in range(8)
    ]
    return make_run(tmp_path_factory.mktemp("mixed") / "run", sources=images)


@pytest.fixture(scope="module")
def mixed(mixed_run: Path) -> Path:
    out = mixed_run.parent / "release"
    export_run(mixed_run, out, NAMED)
    return out


def test_only_originals_of_credentialed_or_unknown_licence_are_left_out(mixed: Path) -> None:
    found = dict.fromkeys(range(8), 0)
    for _, data in every_byte(mixed):
        for n in found:
            # Neither the file nor its compressed scan appears, even inside other data.
            found[n] += data == original(n) or original(n)[700:] in data
    assert {n for n, times in found.items() if times} == {n for n in range(8) if n % 4 in (1, 3)}
    assert verify_release(mixed, pixels=True).problems == ()


def test_each_layout_has_each_original_once(mixed: Path) -> None:
    carried = {sha(original(n)) for n in range(8) if n % 4 in (1, 3)}
    tables = rows(mixed, "originals")
    files = [sha(path.read_bytes()) for path in mixed.glob("originals/*/*.jpeg")]
    assert sorted(sha(row["image"]["bytes"]) for row in tables) == sorted(files) == sorted(carried)
    assert {(row["dataset"], row["licence"]) for row in tables} == {("attribution",) * 2, ("open",) * 2}
    index = [json.loads(line) for line in (mixed / "originals/originals.jsonl").read_text().splitlines()]
    assert {line["sha256"]: sha((mixed / line["path"]).read_bytes()) for line in index} == {
        s: s for s in carried
    }
    assert [line["shared_by"] for line in index] == [
        [f"{line['dataset']}/{line['image_id']}"] for line in index
    ]


def test_training_table_has_the_successes_whose_original_is_there(
    mixed: Path, mixed_run: Path, tmp_path: Path
) -> None:
    import datasets

    parts = datasets.load_dataset(str(mixed), "train", cache_dir=str(tmp_path)).values()
    loaded = [row for part in parts for row in part]
    with JournalReader.open(mixed_run) as reader:
        wanted = {
            row.id: row
            for row in reader.tasks(TaskState.SUCCESS)
            if reader.image(row.task.image_id).licence in (Licence.OPEN, Licence.ATTRIBUTION)
        }
        assert {row["task_id"] for row in loaded} == wanted.keys()
        for row in loaded:
            attempts = reader.attempts(row["task_id"], wanted[row["task_id"]].generation)
            won = next(a for a in attempts if a.round == wanted[row["task_id"]].round)
            assert row["instruction"] == won.instruction
            assert row["original"].size == row["edited"].size == (64, 64)
            assert (row["mask"] is None) == (won.mask is None)
            assert row["sha256"] == won.edited
    successes = rows(mixed, "success")
    assert (
        {row["task_id"] for row in successes if row["original"]}
        == wanted.keys()
        < {r["task_id"] for r in successes}
    )


def test_an_image_of_two_sources_has_the_stricter_licence(tmp_path: Path) -> None:
    first, second = source_image(1, Licence.CREDENTIALED), source_image(2, Licence.OPEN)
    twin = replace(second, dataset="open", prepared_sha256=first.prepared_sha256)
    mine = replace(source_image(3, Licence.OPEN), dataset="half open")
    half = replace(source_image(5, Licence.UNKNOWN), dataset="half open")
    run = make_run(tmp_path / "run", sources=[replace(first, dataset="hospital"), twin, mine, half])
    export_run(run, tmp_path / "out", replace(APPROVED, licences=("CC-BY-4.0",)))
    assert not any(original(n)[700:] in data for n in (1, 3, 5) for _, data in every_byte(tmp_path / "out"))


def test_an_imported_release_suffices_for_a_benchmark_and_for_training(mixed: Path, tmp_path: Path) -> None:
    summary = import_release(mixed, tmp_path / "imported")
    assert (summary.originals, summary.without_original) == (4, 4)
    made = benchmark_from_build(tmp_path / "imported", tmp_path / "bench")
    # of 8 successes 4 are of a finding that the taxonomy has; 2 of these are of a credentialed image
    assert (made.successes, made.real, made.synthetic, made.licences) == (8, 2, 2, {"open": 4})
    assert made.left_out["no original: it was not in the imported release"] == 2
    pairs = ReleasePreferences(mixed, StoredOriginals(mixed))
    listed = pairs.listed()
    every = [json.loads(row["record"])["image"]["prepared_sha256"] for row in rows(mixed, "preference")]
    shared = [name for name in every if name in {sha(original(n)) for n in (1, 3, 5, 7)}]
    assert len(listed) == len(shared) == 2
    assert f"{len(every) - 2} of {len(every)} examples left out: no image before the edit" in pairs.left_out()
    read = list(pairs.read([example.id for example in listed]))
    assert len(read) == 2
    for pair in read:
        assert pair.before.shape == pair.winner.shape == (64, 64, 3)


def test_an_import_adds_the_importer_s_own_originals(mixed: Path, tmp_path: Path) -> None:
    """One of the four that the release leaves out; an export leaves it out again."""
    with Catalogue.create(tmp_path / "catalogue") as catalogue:
        catalogue.add(source_image(0, Licence.CREDENTIALED), original(0))
        catalogue.add(source_image(9), original(9))
    before = tree(mixed)
    summary = import_release(mixed, tmp_path / "imported", tmp_path / "catalogue")
    assert (summary.originals, summary.without_original) == (5, 3)
    assert tree(mixed) == before
    with JournalReader.open(tmp_path / "imported") as reader:
        assert reader.read_blob(sha(original(0))) == original(0)
        assert not reader.has_blob(sha(original(9)))
    imported = StoredOriginals(tmp_path / "imported")
    own = StoredOriginals(mixed)
    assert len(ReleasePreferences(mixed, imported).listed()) > len(ReleasePreferences(mixed, own).listed())
    export_run(tmp_path / "imported", tmp_path / "again", APPROVED)
    assert tree(tmp_path / "again") == before
    again = import_release(mixed, tmp_path / "from-a-run", tmp_path / "imported")
    assert again.originals == 5


def test_verify_finds_a_credentialed_original_among_open_ones(mixed: Path, tmp_path: Path) -> None:
    """Its hashes are made right again: only the records show it."""
    spoilt = Path(shutil.copytree(mixed, tmp_path / "spoilt"))
    path = next(spoilt.glob("originals/open/*.jpeg"))
    path.write_bytes(original(0))
    reseal(spoilt)
    problems = [(p.kind, p.path, p.detail) for p in verify_release(spoilt).problems]
    name = path.relative_to(spoilt).as_posix()
    assert [(kind, where) for kind, where, _ in problems] == [("licence", name)]
    assert "licence class is credentialed" in problems[0][2]
    path.write_bytes(original(15))
    reseal(spoilt)
    (problem,) = verify_release(spoilt).problems
    assert (problem.kind, problem.path) == ("reference", name)
    assert "of no recorded image" in problem.detail
