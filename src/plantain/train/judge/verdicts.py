"""Verdicts to learn from, out of a run's journal or a release's tables: what was judged, and what was said of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import orjson

from plantain.catalogue.groups import Groups
from plantain.files.opening import read_inside
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import JournalReader
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.journal.payload import verdict_of
from plantain.models.hosted.pictures import media_type
from plantain.records import Direction, Finding, InputError, Rubric, SourceImage, TaskKind, Verdict
from plantain.roles import EncodedImage, JudgeRequest
from plantain.rubrics import recorded
from plantain.train.examples.originals import StoredOriginals
from plantain.train.examples.pairs import ListedExample
from plantain.train.examples.release_pairs import TABLES, TEST, TRAINING, source_image, table_rows

FACTS = "run.json"
"""In a release: what its run had frozen."""


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    """One attempt with its verdict, without pixels.

    Attributes:
        id: task, generation and round.
        image: the original.
        edited: SHA-256 of the edited picture.
        modality, finding, direction, instruction: what was asked for.
        verdict: what a judge said.
        split: of a release; "" where there is none.
    """

    id: str
    image: SourceImage
    edited: str
    modality: str
    finding: str
    direction: Direction
    instruction: str
    verdict: Verdict
    split: str = ""

    @property
    def task(self) -> str:
        """Whose attempt it is."""
        return self.id.rsplit("-g", 1)[0]

    def listed(self, groups: Groups) -> ListedExample:
        """As splits take it."""
        reserved = self.split not in ("", TRAINING)
        name = f"{self.direction} {self.finding}"
        return ListedExample(self.id, name, groups.name(self.image), reserved, self.split == TEST)


class VerdictSource(Protocol):
    """Where verdicts come from; pictures are read one by one."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    @property
    def rubric(self) -> Rubric:
        """By which all of them judge."""
        ...

    def judgements(self) -> list[StoredJudgement]:
        """Those whose two pictures are at hand and whose every criterion has a result, in a stable order."""
        ...

    def requests(self, some: Sequence[StoredJudgement]) -> Iterator[tuple[StoredJudgement, JudgeRequest]]:
        """What a judge is handed for each, in an order of the source's own that never changes."""
        ...


def verdicts_of(folder: Path, judge: str = "", originals: Path | None = None) -> VerdictSource:
    """The verdicts of a run, or of a release in the `parquet` layout.

    Args:
        folder: either.
        judge: whose verdicts; "" for those that decided.
        originals: the run or catalogue with a release's originals; default: those that it carries.

    Raises:
        InputError: it is neither.
    """
    if (folder / JOURNAL_NAME).is_file():
        return RunVerdicts(folder, judge)
    if not (folder / TABLES).is_dir():
        raise InputError(
            f"{folder}: neither a run (no {JOURNAL_NAME}) nor a release with tables (no {TABLES}/)"
        )
    return ReleaseVerdicts(folder, StoredOriginals(originals or folder), judge)


def judgements_listed(some: Sequence[StoredJudgement]) -> list[ListedExample]:
    """As splits take them, patients and pictures joined."""
    groups = Groups(one.image for one in some)
    return [one.listed(groups) for one in some]


@dataclass(slots=True)
class RunVerdicts:
    """Verdicts of a run: of attempts that were not superseded."""

    run: Path
    judge: str
    taxonomy: Taxonomy = field(default_factory=load_taxonomy)

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def rubric(self) -> Rubric:
        with JournalReader.open(self.run) as reader:
            return recorded(reader.header.frozen)

    def judgements(self) -> list[StoredJudgement]:
        with JournalReader.open(self.run) as reader:
            return list(self._found(reader))

    def _found(self, reader: JournalReader) -> Iterator[StoredJudgement]:
        for attempt in reader.all_attempts():
            verdict = attempt.verdict
            if attempt.edited is None or not reader.has_blob(attempt.edited):
                continue
            if self.judge:
                key = (attempt.generation, attempt.round)
                verdicts = [v for v in reader.verdicts(attempt.task_id) if (v.generation, v.round) == key]
                own = [v for v in verdicts if v.verdict.judge == self.judge]
                verdict = max(own, key=lambda v: v.draw).verdict if own else None
            task = reader.task(attempt.task_id).task
            image = reader.image(task.image_id)
            if (
                task.kind is not TaskKind.EDIT
                or not reader.has_blob(image.prepared_sha256)
                or not _whole(verdict)
            ):
                continue
            assert verdict is not None
            name = f"{attempt.task_id}-g{attempt.generation}-r{attempt.round}"
            yield StoredJudgement(
                name, image, attempt.edited, task.modality, task.finding, task.direction,
                attempt.instruction, verdict,
            )  # fmt: skip

    def requests(self, some: Sequence[StoredJudgement]) -> Iterator[tuple[StoredJudgement, JudgeRequest]]:
        rubric = self.rubric
        with JournalReader.open(self.run) as reader:
            for one in some:
                before, after = (reader.read_blob(sha) for sha in (one.image.prepared_sha256, one.edited))
                yield one, _request(one, before, after, rubric, self.taxonomy)


@dataclass(slots=True)
class ReleaseVerdicts:
    """Verdicts of a release, whose records have them and whose tables of edits have the pictures."""

    release: Path
    originals: StoredOriginals
    judge: str
    taxonomy: Taxonomy = field(default_factory=load_taxonomy)

    @property
    def name(self) -> str:
        return self.release.name

    @property
    def rubric(self) -> Rubric:
        try:
            return recorded(orjson.loads(read_inside(self.release, self.release / FACTS))["facts"]["frozen"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.release / FACTS}: does not say by which rubric was judged: {error}"
            ) from error

    def judgements(self) -> list[StoredJudgement]:
        held = {self._key(row) for _, row in self._pictures([])}
        found = []
        for row in table_rows(self.release, "trajectories", ["record"]):
            found += [
                one for key, one in _of_record(orjson.loads(str(row["record"])), self.judge) if key in held
            ]
        return [one for one in found if self.originals.has(one.image.prepared_sha256)]

    def requests(self, some: Sequence[StoredJudgement]) -> Iterator[tuple[StoredJudgement, JudgeRequest]]:
        rubric, wanted = self.rubric, {one.id: one for one in some}
        for name, row in self._pictures(["image"]):
            one = wanted.pop(self._key(row), None)
            if one is not None:
                before = self.originals.encoded(one.image.prepared_sha256, one.image.id)
                yield one, _request(one, before, _bytes(row["image"], name), rubric, self.taxonomy)

    def _pictures(self, columns: list[str]) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Rows of the tables of edited pictures; columns of pixels only where they are asked for."""
        for table in ("success", "failed"):
            if any((self.release / TABLES / table).glob("*.parquet")):
                for row in table_rows(
                    self.release, table, ["task_id", "attempt_generation", "round", *columns]
                ):
                    yield str(row["task_id"]), row

    def _key(self, row: Mapping[str, object]) -> str:
        return f"{row['task_id']}-g{row['attempt_generation']}-r{row['round']}"


def _of_record(record: Mapping[str, object], judge: str) -> Iterator[tuple[str, StoredJudgement]]:
    """The judged attempts of a release's record. Raises InputError when it is not a record of ours."""
    try:
        image = source_image(record["image"])
        for attempt in record["attempts"]:  # type: ignore[attr-defined]  # checked by what is read of it
            verdicts = [
                v for v in attempt["verdicts"] if (v["verdict"]["judge"] == judge if judge else v["decisive"])
            ]
            verdict = verdict_of(verdicts[-1]["verdict"]) if verdicts else None
            if (
                record["kind"] != TaskKind.EDIT
                or attempt["superseded"]
                or not attempt["edited"]
                or not _whole(verdict)
            ):
                continue
            assert verdict is not None
            name = f"{record['task_id']}-g{attempt['generation']}-r{attempt['round']}"
            yield name, StoredJudgement(
                name, image, attempt["edited"]["sha256"], str(record["modality"]), str(record["finding"]),
                Direction(str(record["direction"])), str(attempt["instruction"] or ""), verdict,
                str(record["split"] or ""),
            )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a row's record is not what a release of ours holds: {error}") from error


def _whole(verdict: Verdict | None) -> bool:
    """Whether every criterion has a result: only that can be learned."""
    return verdict is not None and all(r.passed is not None for r in verdict.observations.criteria.values())


def _request(
    one: StoredJudgement, before: bytes, after: bytes, rubric: Rubric, taxonomy: Taxonomy
) -> JudgeRequest:
    return JudgeRequest(
        image=one.image,
        original=EncodedImage(before, media_type(before)),
        edited=EncodedImage(after, media_type(after)),
        instruction=one.instruction,
        finding=_finding(taxonomy, one),
        direction=one.direction,
        rubric=rubric,
        seed=0,
    )


def _bytes(cell: object, name: str) -> bytes:
    data = cell.get("bytes") if isinstance(cell, dict) else None
    if not isinstance(data, bytes):
        raise InputError(f"task {name}: no picture in its row")
    return data


def _finding(taxonomy: Taxonomy, one: StoredJudgement) -> Finding | None:
    try:
        return taxonomy.get(one.modality, one.finding)
    except InputError:
        return None
