"""Checks that the records of a release agree with its files: tasks, counts, references between files, licences."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import orjson

from plantain.journal import JournalReader
from plantain.journal.cards import FOLDER as CARDS
from plantain.journal.questions.release import closed_count
from plantain.privacy.licence_texts import PARTS
from plantain.privacy.original_licences import PART
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import InputError, Licence
from plantain.release.plan import FACTS, TRAJECTORIES
from plantain.release.proof.contents import json_entries
from plantain.release.proof.inventory import Inventory, ReleaseProblem, why_unsafe
from plantain.release.task_record import TaskRecord, from_json, journal_parts

NEEDED = "every release has it"
"""Said of a file that is gone although no list need name it."""

_SMALL = 64 << 20
"""Documents that are read whole; none of ours comes near."""

_PATTERNS = re.compile(r"^    path: (\[.*\])$", re.MULTILINE)

_NO_TREE = ("LICENSES/", f"{CARDS}/")
"""Folders whose JSON files are none of the tree's."""


def check_records(out: Path, inventory: Inventory, against: JournalReader | None) -> Iterator[ReleaseProblem]:
    """Yield every disagreement; images are taken out of the inventory as their records are found.

    Args:
        inventory: only files that are whole there are read.
        against: the run that the release was made from, if at hand.
    """
    tasks: Counter[str] = Counter()
    licences: dict[str, set[str]] = {}
    if inventory.get(TRAJECTORIES).whole:
        yield from _guard(TRAJECTORIES, _trajectories(out, inventory, tasks, licences, against))
        if against is not None:
            yield from _left_out(against, sum(tasks.values()))
        for kind, check in (
            (FACTS, _facts(out, inventory, tasks)),
            (PARTS, _licences(out, inventory, licences)),
        ):
            if inventory.get(kind).whole:
                yield from _guard(kind, check)
            elif _absent(out, kind, inventory):
                yield ReleaseProblem(kind, "missing", NEEDED)
    elif _absent(out, TRAJECTORIES, inventory):
        yield ReleaseProblem(TRAJECTORIES, "missing", NEEDED)
    for path in [path for path, known in inventory.files.items() if known.whole]:
        if path == "croissant.json":
            yield from _guard(path, _croissant(out, inventory))
        elif path == "README.md":
            yield from _guard(path, _card(out, inventory))
        elif path.endswith(".json") and path.count("/") == 1 and not path.startswith(_NO_TREE):
            yield from _guard(path, _tree_json(out, path, inventory))


def _absent(out: Path, path: str, inventory: Inventory) -> bool:
    """Return True if nothing else reports a file: it is not in the manifest, and not there."""
    return inventory.get(path).listed is None and not os.path.lexists(out / path)


def _guard(path: str, problems: Iterator[ReleaseProblem]) -> Iterator[ReleaseProblem]:
    """Yield the problems, and an error of reading the file as one more."""
    try:
        yield from problems
    except (ValueError, OverflowError, OSError, KeyError, TypeError, AttributeError, InputError) as error:
        detail = " ".join(str(error).split())[:300] or type(error).__name__
        yield ReleaseProblem(path, "record", f"does not hold what it should: {detail}")


# --- tasks ------------------------------------------------------------------------------------------


def _trajectories(
    out: Path,
    inventory: Inventory,
    tasks: Counter[str],
    licences: dict[str, set[str]],
    against: JournalReader | None,
) -> Iterator[ReleaseProblem]:
    last = ""
    named = set[str]()
    with (out / TRAJECTORIES).open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = from_json(line)
            except ValueError as error:
                yield ReleaseProblem(TRAJECTORIES, "record", f"line {number}: {error}")
                continue
            if record.task_id <= last:
                yield ReleaseProblem(
                    TRAJECTORIES, "record", f"line {number}: task {record.task_id} twice or out of order"
                )
            last = record.task_id
            tasks[record.outcome] += 1
            licences.setdefault(record.image.dataset, set()).add(record.image.licence.value)
            yield from _attempts(record, inventory)
            yield from _original(record, inventory)
            named.add(record.image.prepared_sha256)
            if against is not None:
                yield from _compare(record, against)
    for (task, _, round), (path, role, _) in inventory.images.items():
        yield ReleaseProblem(
            path, "reference", f"its {role} image of task {task}, round {round}, is of no recorded attempt"
        )
    for (task, _), path in inventory.beside.items():
        yield ReleaseProblem(path, "reference", f"its original of task {task} is of another image")
    for sha256 in inventory.originals.keys() - named:
        path = inventory.originals[sha256]
        yield ReleaseProblem(path, "reference", f"its original {sha256[:16]} is of no recorded image")


def _original(record: TaskRecord, inventory: Inventory) -> Iterator[ReleaseProblem]:
    """Check that the original of a task may be here."""
    image = record.image
    inventory.beside.pop((record.task_id, image.prepared_sha256), None)
    path = inventory.originals.get(image.prepared_sha256)
    if path is not None and image.licence not in FREE_TO_LEAVE:
        detail = (
            f"is the original of {image.id} of {image.dataset}, whose licence class is {image.licence.value}"
        )
        yield ReleaseProblem(path, "licence", detail)


def _attempts(record: TaskRecord, inventory: Inventory) -> Iterator[ReleaseProblem]:
    for attempt in record.attempts:
        found = inventory.images.pop((record.task_id, attempt.generation, attempt.round), None)
        if found is None:
            continue
        path, role, sha256 = found
        where = f"its image of task {record.task_id}, round {attempt.round},"
        if attempt.edited is None or attempt.edited.sha256 != sha256:
            yield ReleaseProblem(path, "reference", f"{where} is not the one that was judged")
        elif attempt.role != role:
            yield ReleaseProblem(
                path, "reference", f"{where} is called {role}, and its record says {attempt.role}"
            )


def _compare(record: TaskRecord, reader: JournalReader) -> Iterator[ReleaseProblem]:
    """What a task's record says otherwise than the journal."""
    try:
        row = reader.task(record.task_id)
    except InputError:
        yield ReleaseProblem(TRAJECTORIES, "against", f"task {record.task_id} is not in {reader.run}")
        return
    where = f"task {record.task_id}"
    if row.generation != record.generation:
        yield ReleaseProblem(
            TRAJECTORIES, "against", f"{where} was retried since (generation {row.generation} in the run)"
        )
        return
    if row.state is not record.state or (row.round or None) != record.round:
        yield ReleaseProblem(
            TRAJECTORIES, "against", f"{where} is {record.state.value} here and {row.state.value} in the run"
        )
    _, attempts, verdicts, scores, _ = journal_parts(record)
    stored = [replace(attempt, verdict=None) for attempt in reader.attempts(row.id)]
    if (
        stored != attempts
        or sorted(map(repr, reader.verdicts(row.id))) != sorted(map(repr, verdicts))
        or sorted(map(repr, reader.scores(row.id))) != sorted(map(repr, scores))
    ):
        yield ReleaseProblem(
            TRAJECTORIES, "against", f"{where} has other attempts, verdicts or scores than in the run"
        )


def _left_out(reader: JournalReader, released: int) -> Iterator[ReleaseProblem]:
    closed = closed_count(reader)
    if closed > released:
        detail = f"has {released} of the {closed} tasks that are closed in {reader.run}"
        yield ReleaseProblem(TRAJECTORIES, "against", detail)


def _facts(out: Path, inventory: Inventory, tasks: Counter[str]) -> Iterator[ReleaseProblem]:
    document = orjson.loads(_read(out / FACTS))
    counted = {state: n for state, n in document["facts"]["tasks"].items() if n}
    if counted != dict(tasks):
        yield ReleaseProblem(FACTS, "count", f"says {_counts(counted)}, and there are {_counts(tasks)}")
    rows = inventory.trajectory_rows
    if rows is not None and rows != sum(tasks.values()):
        yield ReleaseProblem("data/trajectories", "count", f"has {rows} rows for {sum(tasks.values())} tasks")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {state}" for state, n in sorted(counts.items())) or "none"


# --- references -------------------------------------------------------------------------------------


def _tree_json(out: Path, path: str, inventory: Inventory) -> Iterator[ReleaseProblem]:
    for number, entry in json_entries(out / path):
        for value in _paths_in(entry):
            if why_unsafe(value) or inventory.get(value).listed is None:
                yield ReleaseProblem(
                    path, "reference", f"line {number} names {value[:200]!r}, which is not in the release"
                )


def _paths_in(document: object) -> Iterator[str]:
    """Values of the keys that hold paths, at any depth that we write."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in ("output_path", "final_image_path") and isinstance(value, str):
                yield value
            elif key != "full_conversation":
                yield from _paths_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from _paths_in(value)


def _croissant(out: Path, inventory: Inventory) -> Iterator[ReleaseProblem]:
    path = "croissant.json"
    for item in orjson.loads(_read(out / path))["distribution"]:
        if "contentUrl" in item:
            if inventory.get(str(item["contentUrl"])).listed != item["sha256"]:
                yield ReleaseProblem(
                    path, "reference", f"{item['contentUrl'][:200]!r} is not in the release with that hash"
                )
        else:
            yield from _matched(path, item["includes"], inventory)


def _card(out: Path, inventory: Inventory) -> Iterator[ReleaseProblem]:
    for match in _PATTERNS.finditer(_read(out / "README.md").decode()):
        yield from _matched("README.md", orjson.loads(match[1]), inventory)


def _matched(path: str, patterns: list[str], inventory: Inventory) -> Iterator[ReleaseProblem]:
    for pattern in patterns:
        if not inventory.lists_like(pattern):
            yield ReleaseProblem(path, "reference", f"no file is called {pattern[:200]!r}")


# --- licences ---------------------------------------------------------------------------------------


def _licences(out: Path, inventory: Inventory, licences: Mapping[str, set[str]]) -> Iterator[ReleaseProblem]:
    listed_parts = orjson.loads(_read(out / PARTS))
    parts = {part["dataset"]: part for part in listed_parts if not part["part"].startswith(PART)}
    if inventory.originals and not any(part["part"].startswith(PART) for part in listed_parts):
        yield ReleaseProblem(PARTS, "licence", "says nothing of the originals in the release")
    for dataset in sorted(licences.keys() - parts.keys()):
        yield ReleaseProblem(PARTS, "licence", f"says nothing of images of {dataset}")
    for dataset, part in sorted(parts.items()):
        if inventory.get(str(part["file"])).listed is None:
            yield ReleaseProblem(
                PARTS, "licence", f"names {part['file'][:200]!r}, which is not in the release"
            )
        held = licences.get(dataset, set())
        public = not part["licence"].startswith("LicenseRef")
        if Licence.CREDENTIALED in held and (public or not part["agreement"]):
            yield ReleaseProblem(
                PARTS, "licence", f"images of {dataset} are credentialed: no agreement, or a public licence"
            )
        elif Licence.UNKNOWN in held and public:
            yield ReleaseProblem(
                PARTS, "licence", f"the licence of {dataset} is not known, so none can be granted"
            )


def _read(path: Path) -> bytes:
    if path.stat().st_size > _SMALL:
        raise ValueError("is too large to be what it should be")
    return path.read_bytes()
