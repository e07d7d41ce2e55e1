"""How far a judge says what a study's readers said: on the very pictures that they saw, for the judge's card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plantain.files.opening import read_inside
from plantain.journal import JournalReader, StoredVerdict
from plantain.metrics.statistics.agreement import Agreement, cohen_kappa, icc
from plantain.pixels.decode import decode
from plantain.records import Figure, InputError
from plantain.records.commands import command_line
from plantain.review.people_judge import PREFIX
from plantain.review.ratings import Ratings
from plantain.review.results.agreeing import between_readers
from plantain.review.results.rows import Row, rows_of
from plantain.review.study import PICTURES, ItemKind, ReaderTask, Study, open_study

ICC = "ICC(2,1)"


@dataclass(frozen=True, slots=True)
class JudgedByBoth:
    """One edit: by criterion the share of readers who said yes, how each reader said, and what the judge said."""

    source: str
    cluster: str
    people: Mapping[str, float]
    readers: Mapping[str, float]
    judge: Mapping[str, bool]

    @property
    def share(self) -> float:
        """Of its criteria that the judge passed."""
        return sum(self.judge.values()) / len(self.judge)


def agreement_with_people(folder: Path, run: Path, judge: str) -> dict[str, Figure]:
    """Kappa of the judge's verdicts with the majority of readers, for each criterion and the whole; ICC(2,1) of the
    share of criteria that held, for the readers' mean and the judge; and, for comparison, the readers among themselves.

    Args:
        folder: of a study with an accept block.
        run: that it was made from; the judge's verdicts on its edits are in it.
        judge: as the run calls it.

    Raises:
        InputError: no such study, nobody has answered, or the judge has judged none of these edits.
    """
    study = open_study(folder)
    block = next((one for one in study.blocks if one.task is ReaderTask.ACCEPT), None)
    if block is None:
        raise InputError(f"--study {folder}: has no accept block")
    ratings = Ratings.open(study)
    try:
        rows = [
            row
            for row in rows_of(study, ratings)
            if row.block == block.id and row.kind is ItemKind.MAIN and not row.cannot
        ]
    finally:
        ratings.close()
    if not rows:
        raise InputError(f"--study {folder}: nobody has answered an accept question of this study")
    with JournalReader.open(run) as reader:
        both = judged_by_both(study, rows, reader, judge)
    if not both:
        raise InputError(
            f"--study {folder}: {judge} has judged none of the edits of {run} that people read; let it judge them "
            f"by `{command_line('judge', 'rejudge', run, '--judge', judge)}`"
        )
    name = PREFIX + folder.resolve().name
    found = {name: _whole(both)}
    for criterion, _ in block.criteria:
        if all(criterion in one.judge for one in both):
            majority = [one.people[criterion] > 0.5 for one in both]
            judged = [one.judge[criterion] for one in both]
            found[f"{name}, {criterion}"] = _kappa(majority, judged, both)
    readers = sorted({reader for one in both for reader in one.readers})
    table = np.array([[one.readers.get(reader, np.nan) for one in both] for reader in readers])
    found[f"{name}, {ICC}"] = _figure(
        icc(np.vstack([_mean(table), [one.share for one in both]])), "icc", both
    )
    ceiling = between_readers(block, rows)
    found["readers among themselves"] = _figure(ceiling, "alpha", both)
    found[f"readers among themselves, {ICC}"] = _figure(icc(table), "icc", both)
    return found


def judged_by_both(
    study: Study, rows: Sequence[Row], reader: JournalReader, judge: str
) -> list[JudgedByBoth]:
    """The edits on which readers and the judge both spoke; of several draws of the judge the last one counts."""
    by_edit: dict[tuple[str, str], list[Row]] = {}  # a study of several runs has several edits of a task
    for row in rows:
        by_edit.setdefault((row.source, row.model), []).append(row)
    found = []
    for (source, _), mine in sorted(by_edit.items()):
        verdict = _verdict(study, mine[0], reader, judge)
        if verdict is None:
            continue
        seen = verdict.verdict.observations.criteria
        passed = {
            str(name): criterion.passed for name, criterion in seen.items() if criterion.passed is not None
        }
        names = [name for name in mine[0].value["criteria"] if name in passed]
        if names:
            found.append(
                JudgedByBoth(
                    source,
                    mine[0].cluster,
                    {n: float(np.mean([row.value["criteria"][n] for row in mine])) for n in names},
                    {row.reader: float(np.mean([row.value["criteria"][n] for n in names])) for row in mine},
                    {name: passed[name] for name in names},
                )
            )
    return found


def _verdict(study: Study, row: Row, reader: JournalReader, judge: str) -> StoredVerdict | None:
    """The judge's last word on the attempt whose pixels readers saw."""
    try:
        task = reader.task(row.source)
    except InputError:
        return None
    shown = decode(
        read_inside(study.folder, study.folder / PICTURES / study.by_case[row.case].pictures[row.model])
    )
    verdicts = [one for one in reader.verdicts(task.id) if one.verdict.judge == judge]
    for attempt in reversed(reader.attempts(task.id)):
        own = [one for one in verdicts if (one.generation, one.round) == (attempt.generation, attempt.round)]
        if own and attempt.edited and reader.has_blob(attempt.edited):
            edited = decode(reader.read_blob(attempt.edited))
            if edited.shape == shown.shape and np.array_equal(edited, shown):
                return max(own, key=lambda one: one.draw)
    return None


def _whole(both: Sequence[JudgedByBoth]) -> Figure:
    """All criteria held, for most readers and for the judge."""
    majority = [all(share > 0.5 for share in one.people.values()) for one in both]
    return _kappa(majority, [all(one.judge.values()) for one in both], both)


def _kappa(people: Sequence[bool], judge: Sequence[bool], both: Sequence[JudgedByBoth]) -> Figure:
    return _figure(cohen_kappa(people, judge, clusters=[one.cluster for one in both]), "kappa", both)


def _mean(table: np.ndarray) -> list[float]:
    return [float(np.nanmean(column)) for column in table.T]


def _figure(agreement: Agreement, kind: str, both: Sequence[JudgedByBoth]) -> Figure:
    pictures = len({one.cluster for one in both})
    return Figure(
        agreement.items, agreement.value, agreement.low, agreement.high, pictures, kind, agreement.reason
    )
