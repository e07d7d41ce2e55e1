"""`people/STUDY`: what the readers of a study said, as a judge: it knows the pictures that they saw, and no others."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from statistics import fmean

import numpy as np
import orjson

from plantain.files.opening import read_inside
from plantain.pixels.decode import decode
from plantain.records import CriterionResult, InputError, Observations, Outcome, OutcomeKind, Usage
from plantain.records.counts import counted
from plantain.review.ratings import Ratings
from plantain.review.results.rows import Row, rows_of
from plantain.review.study import PICTURES, ItemKind, ReaderTask, Study, open_study
from plantain.roles import JudgeRequest, Reply, failed

PREFIX = "people/"
"""What stands before a study's folder in the name of such a judge."""


class PeopleJudge:
    """The majority of a study's readers, criterion by criterion; a tie fails, since not most of them accepted.

    Args:
        folder: of a study of this run, with an accept block by the run's own rubric.

    Raises:
        InputError: no study, or nobody has accepted or rejected anything in it.
    """

    sends_nothing = True

    def __init__(self, folder: Path) -> None:
        self._study: Study = open_study(folder)
        ratings = Ratings.open(self._study)
        try:
            rows = [
                row
                for row in rows_of(self._study, ratings)
                if row.task is ReaderTask.ACCEPT and row.kind is ItemKind.MAIN and not row.cannot
            ]
        finally:
            ratings.close()
        if not rows:
            raise InputError(
                f"--judge {PREFIX}{folder}: nobody has answered an accept question of this study"
            )
        self._by_picture: dict[str, list[Row]] = {}
        for row in rows:
            self._by_picture.setdefault(row.source, []).append(row)
        self.name = PREFIX + folder.resolve().name
        answers = orjson.dumps(
            [[row.reader, row.item, dict(row.value)] for row in rows], option=orjson.OPT_SORT_KEYS
        )
        self.fingerprint = f"{self._study.digest[:16]} {hashlib.sha256(answers).hexdigest()[:16]}"

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """What most readers said of this very picture; not applicable where they saw none, or another one."""
        rows = self._saw(request.task, request)
        names = [criterion.name for criterion in request.rubric.criteria]
        if not rows or set(rows[0].value["criteria"]) != set(names):
            return failed(
                Outcome(OutcomeKind.NOT_APPLICABLE, "no reader of the study saw this picture by this rubric")
            )
        by_reader: dict[str, list[Row]] = {}  # who saw equal pixels of two runs has one voice all the same
        for row in rows:
            by_reader.setdefault(row.reader, []).append(row)
        people = len(by_reader)
        codes = Counter(
            code for own in by_reader.values() for code in {code for row in own for code in row.codes}
        )
        criteria = {}
        for name in names:
            yes = sum(fmean(bool(row.value["criteria"][name]) for row in own) for own in by_reader.values())
            passed = 2 * yes > people
            why = () if passed else tuple(sorted(code for code, n in codes.items() if 2 * n > people))
            criteria[name] = CriterionResult(
                passed, yes / people, why, f"{yes:g} of {counted(people, 'reader')} said yes"
            )
        return Reply(
            Observations(criteria, reason=f"{counted(people, 'reader')} of study {self._study.digest[:16]}"),
            usage=Usage(served_model=f"{self.name}@{self._study.digest[:16]}"),
        )

    def _saw(self, task: str, request: JudgeRequest) -> list[Row]:
        """The answers about just these pixels: a task may have other attempts, which nobody was shown."""
        rows = self._by_picture.get(task, [])
        if not rows:
            return []
        case = self._study.by_case[rows[0].case]
        edited = decode(request.edited.data)
        found = []
        for row in rows:
            shown = decode(
                read_inside(self._study.folder, self._study.folder / PICTURES / case.pictures[row.model])
            )
            if shown.shape == edited.shape and np.array_equal(shown, edited):
                found.append(row)
        return found
