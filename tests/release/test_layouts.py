"""The usual library of every layout reads it back without a network, and agrees with the journal itself."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import PIL.Image
import pyarrow.parquet as pq
import pytest

from plantain.journal import JournalReader
from plantain.records import TaskKind, TaskState
from plantain.release.task_record import from_json, role_of

pytestmark = pytest.mark.usefixtures("no_network")


def by_role(reader: JournalReader) -> dict[str, Counter[str]]:
    """Count hashes of edited images by their role in a release, straight from the journal."""
    found: dict[str, Counter[str]] = {}
    for row in reader.tasks():
        if row.state is not TaskState.PENDING:
            for attempt in reader.attempts(row.id):
                if attempt.edited is not None:
                    found.setdefault(role_of(row, attempt), Counter())[attempt.edited] += 1
    return found


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def rows_of(release: Path, config: str, cache: Path) -> Iterator[dict[str, object]]:
    import datasets

    pattern = {"every": f"{release}/data/{config}/*.parquet"}
    table = datasets.load_dataset("parquet", data_files=pattern, split="every", cache_dir=str(cache))
    yield from table


@pytest.mark.parametrize("config", ["success", "failed", "superseded", "unjudged"])
def test_parquet_images_are_the_journals(
    release: Path, reader: JournalReader, config: str, tmp_path: Path
) -> None:
    import datasets

    parts = datasets.load_dataset(str(release), config, cache_dir=str(tmp_path))
    assert set(parts) <= {"train", "validation", "test"}
    table = datasets.concatenate_datasets(list(parts.values()))
    assert isinstance(table.features["image"], datasets.Image)
    raw = table.cast_column("image", datasets.Image(decode=False)).cast_column(
        "mask", datasets.Image(decode=False)
    )
    assert Counter(sha(row["image"]["bytes"]) for row in raw) == by_role(reader)[config]
    for row, plain in zip(table, raw, strict=True):
        assert row["image"].size == (64, 64)
        assert row["sha256"] == sha(plain["image"]["bytes"])
        task = reader.task(row["task_id"])
        assert row["direction"] == task.task.direction.value
        (attempt,) = [
            a for a in reader.attempts(task.id, row["attempt_generation"]) if a.round == row["round"]
        ]
        assert row["instruction"] == attempt.instruction
        assert (row["qualified"] is None) == (attempt.verdict is None)
        if attempt.verdict is not None:
            assert row["score"] == attempt.verdict.score
            assert row["realism"] == attempt.verdict.qualified
            assert row["codes"] == ([] if attempt.verdict.qualified else ["hard_edge"])
        if attempt.mask is None:
            assert plain["mask"] is None or plain["mask"]["bytes"] is None
        else:
            assert sha(plain["mask"]["bytes"]) == attempt.mask


def test_parquet_trajectories_contain_every_closed_task(
    release: Path, reader: JournalReader, tmp_path: Path
) -> None:
    rows = list(rows_of(release, "trajectories", tmp_path))
    closed = {row.id: row for row in reader.tasks() if row.state is not TaskState.PENDING}
    assert {row["task_id"] for row in rows} == closed.keys()
    assert len(rows) == len(closed)
    for row in rows:
        attempts = reader.attempts(row["task_id"])
        assert [entry["instruction"] for entry in row["rounds"]] == [a.instruction for a in attempts]
        assert [entry["superseded"] for entry in row["rounds"]] == [a.superseded for a in attempts]
        assert [entry["sha256"] for entry in row["rounds"]] == [a.edited for a in attempts]
        assert from_json(row["record"]).task_id == row["task_id"]


def test_no_group_is_in_two_splits(release: Path, reader: JournalReader, tmp_path: Path) -> None:
    sides: dict[tuple[str, str], set[str]] = {}
    splits = Counter()
    for path in sorted(release.glob("data/trajectories/*.parquet")):
        split = path.name.split("-")[1]
        for row in pq.read_table(path).to_pylist():
            splits[split] += 1
            image = from_json(row["record"]).image
            if image.group is not None:
                sides.setdefault((image.dataset, image.group), set()).add(split)
    assert set(splits) == {"train", "validation", "test"}
    assert all(len(found) == 1 for found in sides.values())


def test_preference_has_the_columns_that_diffusion_dpo_reads(
    release: Path, reader: JournalReader, tmp_path: Path
) -> None:
    rows = list(rows_of(release, "preference", tmp_path))
    expected = []
    for task in reader.tasks(state=TaskState.SUCCESS):
        if task.task.kind is TaskKind.EDIT:
            made = [a for a in reader.attempts(task.id) if not a.superseded and a.edited is not None]
            won = next(a for a in made if a.round == task.round)
            expected += [(won.edited, a.edited) for a in made if a.round != task.round]
    assert expected
    found = []
    for row in rows:
        for slot in ("jpg_0", "jpg_1"):
            PIL.Image.open(io.BytesIO(row[slot])).verify()
        images = [sha(row["jpg_0"]), sha(row["jpg_1"])]
        assert row["label_0"] in (0, 1)
        found.append(tuple(images if row["label_0"] else images[::-1]))
        assert row["caption"].split()[0] in ("Add", "Remove")
        assert row["same_instruction"] == (row["caption_0"] == row["caption_1"])
        better = 0 if row["label_0"] else 1
        # a failure fails realism, whose weight in the rubric is 0.20
        assert row[f"score_{better}"] - row[f"score_{1 - better}"] == pytest.approx(0.2)
        assert row[f"qualified_{better}"] and not row[f"qualified_{1 - better}"]
    assert Counter(found) == Counter(expected)
    assert {row["label_0"] for row in rows} == {0, 1}


def test_webdataset_reads_back(release: Path, reader: JournalReader, tmp_path: Path) -> None:
    import webdataset

    for role, hashes in by_role(reader).items():
        urls = [str(path) for path in sorted(release.glob(f"wds/{role}-*.tar"))]
        samples = list(webdataset.WebDataset(urls, shardshuffle=False))
        assert Counter(sha(sample["jpg"]) for sample in samples) == hashes
        assert all(set(sample) >= {"jpg", "json"} and "." not in sample["__key__"] for sample in samples)
        for sample in samples:
            assert json.loads(sample["json"])["sha256"] == sha(sample["jpg"])
    decoded = webdataset.WebDataset(urls, shardshuffle=False).decode("pil")
    assert next(iter(decoded))["jpg"].size == (64, 64)


def test_tree_is_named_as_published(release: Path, reader: JournalReader) -> None:
    names = {
        str(path.relative_to(release)): sha(path.read_bytes()) for path in release.glob("[!o]*/*/*.jpeg")
    }
    roles = by_role(reader)
    wanted = roles["success"] + roles["failed"]
    assert Counter(names.values()) == wanted
    shapes = (
        r"(ODIR-5K|folder_of_mine)-edit/AMD/eye_\d+-AMD-edit\.jpeg",
        r"(ODIR-5K|folder_of_mine)-remove/normal/eye_\d+-Diabetic_Macular_Edema-remove\.jpeg",
        r"(ODIR-5K|folder_of_mine)-edit-failed/AMD/eye_\d+-AMD-edit-failed-\d\.jpeg",
        r"(ODIR-5K|folder_of_mine)-remove-failed/Diabetic_Macular_Edema/"
        r"eye_\d+-Diabetic_Macular_Edema-remove-failed-\d\.jpeg",
    )
    for name in names:
        assert any(re.fullmatch(shape, name) for shape in shapes), name
    for shape in shapes:
        assert any(re.fullmatch(shape, name) for name in names), shape


def test_json_files_of_the_tree(release: Path, reader: JournalReader) -> None:
    entries = {}
    for path in release.glob("*/all_conversations.json"):
        entries |= json.loads(path.read_bytes())
    closed = [row for row in reader.tasks() if row.state is not TaskState.PENDING]
    assert len(entries) == len(closed)
    for entry in entries.values():
        keys = "image_id dataset modality disease task rounds outcome output_path"
        assert set(keys.split()) <= set(entry)
        assert ("success_round" in entry) == (entry["outcome"] == "success")
        if entry["output_path"] is not None:
            assert (release / entry["output_path"]).is_file()
        for attempt in entry["rounds"]:
            if attempt["verdict"] is not None:
                keys = "has_disease structure_reasonable looks_realistic qualified reason"
                assert set(keys.split()) <= set(attempt["verdict"])
    progress = {}
    for path in release.glob("*/progress.json"):
        progress |= json.loads(path.read_bytes())
    states = Counter(row.state for row in closed)
    assert Counter(progress.values()) == {
        "success": states[TaskState.SUCCESS],
        "failed": states[TaskState.FAILED],
        "api_failed": states[TaskState.STOPPED],
        "not_applicable": states[TaskState.NOT_APPLICABLE],
    }
    failures = [f for p in release.glob("*/api_failures.json") for f in json.loads(p.read_bytes())]
    refused = [a for row in closed for a in reader.attempts(row.id) if not a.superseded and a.edited is None]
    assert len(failures) == len(refused) > 0
    assert {failure["step"] for failure in failures} == {"edit_image"}
    summaries = [f for p in release.glob("*-failed/failed_summary.json") for f in json.loads(p.read_bytes())]
    failed = [row for row in closed if row.state is TaskState.FAILED and row.task.kind is TaskKind.EDIT]
    assert len(summaries) == len(failed)
    retries = [f for p in release.glob("*/retry_log.json") for f in json.loads(p.read_bytes())]
    assert len(retries) == sum(row.generation > 0 for row in closed) > 0
