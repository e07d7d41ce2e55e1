"""A study's readers as a judge (`people/STUDY`), and a judge's agreement with them, on the edits that they saw."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import orjson

from plantain.files.opening import read_inside
from plantain.journal import JournalReader, StoredVerdict
from plantain.metrics.statistics.agreement import Agreement, cohen_kappa
from plantain.pixels.decode import decode
from plantain.records import (
    CriterionResult,
    Figure,
    InputError,
    Observations,
    Outcome,
    OutcomeKind,
    Usage,
)
from plantain.records.messages import command_line, counted
from plantain.review.blinding import fitted
from plantain.review.results.rows import Row, between_readers, judged_rows
from plantain.review.study import IMAGES, ReaderTask, Study, open_study
from plantain.roles import JudgeRequest, Reply, failed

PREFIX = "people/"
"""Precedes a study's folder in the name of its readers as a judge."""


class PeopleJudge:
    """A judge that returns the majority of a study's readers for each criterion; a tie fails.

    Args:
        folder: a study with an accept block by the run's rubric.

    Raises:
        InputError: the folder is not a study, or no accept question was answered.
    """

    def __init__(self, folder: Path) -> None:
        self._study = open_study(folder)
        rows = _accept_rows(self._study, f"--judge {PREFIX}{folder}")
        self._by_task: dict[str, list[Row]] = {}
        for row in rows:
            self._by_task.setdefault(row.source, []).append(row)
        self.name = PREFIX + folder.resolve().name
        answers = [[row.reader, row.item, dict(row.value)] for row in rows]
        digest = hashlib.sha256(orjson.dumps(answers, option=orjson.OPT_SORT_KEYS)).hexdigest()
        self.fingerprint = f"{self._study.digest[:16]} {digest[:16]}"

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Return the readers' majority on this edit; not applicable if no reader saw it by this rubric."""
        edited = request.edited.data
        rows = [
            row
            for row in self._by_task.get(request.task, [])
            if saw(self._study, row.case, row.model, edited)
        ]
        names = [criterion.name for criterion in request.rubric.criteria]
        if not rows or set(rows[0].value["criteria"]) != set(names):
            return failed(
                Outcome(OutcomeKind.NOT_APPLICABLE, "no reader of the study saw this image by this rubric")
            )
        by_reader: dict[str, list[Row]] = {}  # a reader who saw equal pixels of two runs counts once
        for row in rows:
            by_reader.setdefault(row.reader, []).append(row)
        readers = len(by_reader)
        count = counted(readers, "reader")
        codes = Counter(code for own in by_reader.values() for code in {c for row in own for c in row.codes})
        often = tuple(sorted(code for code, n in codes.items() if 2 * n > readers))
        criteria = {}
        for name in names:
            yes = sum(fmean(bool(row.value["criteria"][name]) for row in own) for own in by_reader.values())
            passed = 2 * yes > readers
            evidence = f"{yes:g} of {count} accepted"
            criteria[name] = CriterionResult(passed, yes / readers, () if passed else often, evidence)
        study = self._study.digest[:16]
        return Reply(
            Observations(criteria, reason=f"{count} of study {study}"),
            usage=Usage(served_model=f"{self.name}@{study}"),
        )


def agreement_with_people(folder: Path, run: Path, judge: str) -> dict[str, Figure]:
    """Measure a judge's agreement with a study's readers, for its card; return figures by name.

    They are kappa of its verdicts with the readers' majority by criterion, which accepts an edit if all pass, and, for
    comparison, the readers' agreement with each other.

    Args:
        folder: a study with an accept block.
        run: the run that it was made from, with the judge's verdicts on its edits.
        judge: the judge's name in the run.

    Raises:
        InputError: the study is unknown or unanswered, or the judge has judged none of these edits.
    """
    study = open_study(folder)
    rows = _accept_rows(study, f"--people {folder}")
    with JournalReader.open(run) as reader:
        both = _judged_by_both(study, rows, reader, judge)
    if not both:
        raise InputError(
            f"--people {folder}: {judge} has judged none of the edits of {run} that people read; run "
            f"`{command_line('judge', 'rejudge', run, '--judge', judge)}`"
        )
    clusters, people, verdicts = zip(*both, strict=True)
    images, kappa = len(set(clusters)), cohen_kappa(people, verdicts, clusters=clusters)
    return {
        PREFIX + folder.resolve().name: _figure(kappa, "kappa", images),
        "readers among themselves": _figure(between_readers(rows), "alpha", images),
    }


def _judged_by_both(
    study: Study, rows: Sequence[Row], reader: JournalReader, judge: str
) -> list[tuple[str, bool, bool]]:
    """Return (cluster, accepted by the readers' majority, by the judge) of the edits that both judged.

    Criteria that the judge did not answer do not count; of several draws the last one counts.
    """
    by_edit: dict[tuple[str, str], list[Row]] = {}  # a study of several runs has several edits of a task
    for row in rows:
        by_edit.setdefault((row.source, row.model), []).append(row)
    found = []
    for _, mine in sorted(by_edit.items()):
        verdict = _verdict(study, mine[0], reader, judge)
        if verdict is None:
            continue
        seen = verdict.verdict.observations.criteria
        passed = {str(name): one.passed for name, one in seen.items() if one.passed is not None}
        names = [name for name in mine[0].value["criteria"] if name in passed]
        if names:
            majority = all(fmean(row.value["criteria"][name] for row in mine) > 0.5 for name in names)
            found.append((mine[0].cluster, majority, all(passed[name] for name in names)))
    return found


def _verdict(study: Study, row: Row, reader: JournalReader, judge: str) -> StoredVerdict | None:
    """Return the judge's last verdict on the attempt that readers saw."""
    try:
        task = reader.task(row.source)
    except InputError:
        return None
    verdicts = [one for one in reader.verdicts(task.id) if one.verdict.judge == judge]
    for attempt in reversed(reader.attempts(task.id)):
        own = [one for one in verdicts if (one.generation, one.round) == (attempt.generation, attempt.round)]
        if not own or not attempt.edited or not reader.has_blob(attempt.edited):
            continue
        if saw(study, row.case, row.model, reader.read_blob(attempt.edited)):
            return max(own, key=lambda one: one.draw)
    return None


def _accept_rows(study: Study, what: str) -> list[Row]:
    rows = judged_rows(study, ReaderTask.ACCEPT)
    if not rows:
        raise InputError(
            f"{what}: no answer to an accept question in this study; readers of a study made with --task accept answer "
            f"in {command_line('review', 'serve', study.folder)}, or in files for plantain review import"
        )
    return rows


def saw(study: Study, name: str, model: str, edited: bytes) -> bool:
    """Return True if the readers of a case saw this edit; other attempts of the same task have other pixels."""
    case = study.by_case[name]
    shown = decode(read_inside(study.folder, study.folder / IMAGES / case.images[model]))
    return np.array_equal(shown, fitted(decode(edited), case.size))


def _figure(found: Agreement, kind: str, images: int) -> Figure:
    return Figure(found.items, found.value, found.low, found.high, images, kind, found.reason)
