"""Checks that the records of a release agree with its files: tasks, counts, images, licences."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from plantain.journal import JournalReader
from plantain.journal.questions.release import closed_count
from plantain.privacy.licences import PART, PARTS
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import InputError, Licence
from plantain.release.plan import FACTS, TRAJECTORIES
from plantain.release.proof.inventory import Inventory, KnownFile, ReleaseProblem
from plantain.release.task_record import TaskRecord, from_json, recorded_task

NEEDED = "every release has it"
"""Detail of a missing file that no list names."""

_SMALL = 64 << 20
"""Bytes of the largest document that is read whole."""

Problems = Iterator[ReleaseProblem]


@dataclass(slots=True)
class _Recorded:
    """Content of the task records."""

    tasks: Counter[str] = field(default_factory=Counter)
    originals: set[str] = field(default_factory=set)
    licences: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def check_records(out: Path, inventory: Inventory, against: JournalReader | None) -> Problems:
    """Compare a release's records with its files and yield every disagreement; removes found images from `inventory`.

    Args:
        inventory: the release's files; only undamaged ones are read.
        against: journal of the run that the release was made from; None without it.
    """
    recorded = _Recorded()
    checks = {
        TRAJECTORIES: _trajectories(out, inventory, recorded, against),
        FACTS: _facts(out, recorded),
        PARTS: _licences(out, inventory, recorded),
    }
    for path, check in checks.items():
        if inventory.get(path).whole:
            yield from _guard(path, check)
        elif inventory.get(path) == KnownFile() and not os.path.lexists(out / path):
            yield ReleaseProblem(path, "missing", NEEDED)
        if path == TRAJECTORIES and not inventory.get(path).whole:
            break  # the others would only disagree with records that were not read


def _guard(path: str, problems: Problems) -> Problems:
    """Yield the problems, and an error of reading the file as one more."""
    try:
        yield from problems
    except (ValueError, OverflowError, OSError, KeyError, TypeError, AttributeError, InputError) as error:
        detail = " ".join(str(error).split())[:300] or type(error).__name__
        yield ReleaseProblem(path, "record", f"cannot be read: {detail}")


# --- tasks ------------------------------------------------------------------------------------------


def _trajectories(
    out: Path, inventory: Inventory, recorded: _Recorded, against: JournalReader | None
) -> Problems:
    last = ""
    with (out / TRAJECTORIES).open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = from_json(line)
            except ValueError as error:
                yield ReleaseProblem(TRAJECTORIES, "record", f"line {number}: {error}")
                continue
            if record.task_id <= last:
                detail = f"line {number}: task {record.task_id} twice or out of order"
                yield ReleaseProblem(TRAJECTORIES, "record", detail)
            last = record.task_id
            recorded.tasks[record.state.value] += 1
            recorded.licences[record.image.dataset].add(record.image.licence.value)
            recorded.originals.add(record.image.prepared_sha256)
            yield from _images(record, inventory)
            if against is not None:
                yield from _compare(record, against)
    for (task, _, round), (path, role, _) in inventory.images.items():
        detail = f"its {role} image of task {task}, round {round}, is of no recorded attempt"
        yield ReleaseProblem(path, "reference", detail)
    for sha256 in inventory.originals.keys() - recorded.originals:
        detail = f"its original {sha256[:16]} is of no recorded image"
        yield ReleaseProblem(inventory.originals[sha256], "reference", detail)
    released = sum(recorded.tasks.values())
    if against is not None and (closed := closed_count(against)) > released:
        detail = f"has {released} of the {closed} tasks that are closed in {against.run}"
        yield ReleaseProblem(TRAJECTORIES, "against", detail)


def _images(record: TaskRecord, inventory: Inventory) -> Problems:
    """Check that the original of a task may be here, and that its edits are the judged ones."""
    image = record.image
    original = inventory.originals.get(image.prepared_sha256)
    if original is not None and image.licence not in FREE_TO_LEAVE:
        detail = (
            f"is the original of {image.id} of {image.dataset}, whose licence class is {image.licence.value}"
        )
        yield ReleaseProblem(original, "licence", detail)
    for attempt in record.attempts:
        found = inventory.images.pop((record.task_id, attempt.generation, attempt.round), None)
        if found is None:
            continue
        path, role, sha256 = found
        where = f"its image of task {record.task_id}, round {attempt.round},"
        if attempt.edited is None or attempt.edited.sha256 != sha256:
            yield ReleaseProblem(path, "reference", f"{where} is not the one that was judged")
        elif attempt.role != role:
            detail = f"{where} is called {role}, and its record states {attempt.role}"
            yield ReleaseProblem(path, "reference", detail)


def _compare(record: TaskRecord, reader: JournalReader) -> Problems:
    """Compare a task's record with the journal."""

    def differs(detail: str) -> ReleaseProblem:
        return ReleaseProblem(TRAJECTORIES, "against", f"task {record.task_id} {detail}")

    try:
        row = reader.task(record.task_id)
    except InputError:
        yield differs(f"is not in {reader.run}")
        return
    if row.generation != record.generation:
        yield differs(f"was retried since (generation {row.generation} in the run)")
        return
    if row.state is not record.state or (row.round or None) != record.round:
        yield differs(f"is {record.state.value} here and {row.state.value} in the run")
    stated = recorded_task(record)
    if (
        [replace(one, verdict=None, raw=None) for one in reader.attempts(row.id)] != list(stated.attempts)
        or sorted(map(repr, reader.verdicts(row.id))) != sorted(map(repr, stated.verdicts))
        or sorted(map(repr, reader.scores(row.id))) != sorted(map(repr, stated.scores))
    ):
        yield differs("has other attempts, verdicts or scores than in the run")


def _facts(out: Path, recorded: _Recorded) -> Problems:
    document = orjson.loads(_read(out / FACTS))
    counted = {state: n for state, n in document["facts"]["tasks"].items() if n}
    if counted != dict(recorded.tasks):
        detail = f"states {_counts(counted)}, and there are {_counts(recorded.tasks)}"
        yield ReleaseProblem(FACTS, "count", detail)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {state}" for state, n in sorted(counts.items())) or "none"


# --- licences ---------------------------------------------------------------------------------------


def _licences(out: Path, inventory: Inventory, recorded: _Recorded) -> Problems:
    def problem(detail: str) -> ReleaseProblem:
        return ReleaseProblem(PARTS, "licence", detail)

    listed_parts = orjson.loads(_read(out / PARTS))
    parts = {part["dataset"]: part for part in listed_parts if not part["part"].startswith(PART)}
    if inventory.originals and not any(part["part"].startswith(PART) for part in listed_parts):
        yield problem("does not mention the originals in the release")
    for dataset in sorted(recorded.licences.keys() - parts.keys()):
        yield problem(f"does not mention images of {dataset}")
    for dataset, part in sorted(parts.items()):
        if inventory.get(str(part["file"])).listed is None:
            yield problem(f"names {part['file'][:200]!r}, which is not in the release")
        classes = recorded.licences.get(dataset, set())
        public = not part["licence"].startswith("LicenseRef")
        if Licence.CREDENTIALED in classes and (public or not part["agreement"]):
            yield problem(f"images of {dataset} are credentialed: no agreement, or a public licence")
        elif Licence.UNKNOWN in classes and public:
            yield problem(f"the licence of {dataset} is not known, so none can be granted")


def _read(path: Path) -> bytes:
    if path.stat().st_size > _SMALL:
        raise ValueError("is too large")
    return path.read_bytes()
