"""What judges say of stored attempts, taken in a row at a time and held in bytes, so that millions fit in memory.

An attempt takes 6 bytes and, for each judge, 1 for its verdict and 1 for each criterion; a picture's group about 100. A
million attempts of as many pictures under three judges took 143 MB to hold and 521 MB while their intervals and kappas
were computed (`benchmarks/rejudged_rows.py`).
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from plantain.audit.rejudging.flips import EVERYWHERE, SHOWN, Flip, JudgedRow, JudgeTally
from plantain.metrics.statistics.agreement import cohen_kappa
from plantain.metrics.statistics.clusters import Rate, clustered_rate

NO, YES, UNSCORED, ABSENT, SILENT = range(5)
"""What a judge said of an attempt: no, yes, something unscored, nothing since it was not asked, or no verdict."""

Codes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Judge:
    """One judge's column."""

    answers: bytearray = field(default_factory=bytearray)
    criteria: dict[str, bytearray] = field(default_factory=dict)

    def until(self, rows: int) -> None:
        """Fills up what was not said of the rows before."""
        for column in (self.answers, *self.criteria.values()):
            column.extend(bytes([ABSENT]) * (rows - len(column)))


class JudgedTable:
    """Rows of stored attempts, added one attempt at a time.

    Example: for own in judged_rows(reader, seated, None): table.add(own)
    """

    def __init__(self) -> None:
        self._judges: dict[str, _Judge] = {}
        self._rows = 0
        self._cells: dict[tuple[str, str, str], int] = {}
        self._cell = array("H")
        self._pictures: dict[bytes, int] = {}
        self._picture = array("I")
        self._flipped: dict[tuple[str, str, int], list[tuple[JudgedRow, bool]]] = defaultdict(list)

    def add(self, own: Sequence[JudgedRow]) -> None:
        """Takes in what every judge said of one attempt."""
        if not own:
            return
        about = own[0]
        cell = self._cells.setdefault((about.modality, about.finding, about.direction), len(self._cells))
        self._cell.append(cell)
        # Eight bytes of a hash, not the name of the group: names are long, and there are as many as pictures.
        key = hashlib.blake2b(about.cluster.encode(), digest_size=8).digest()
        self._picture.append(self._pictures.setdefault(key, len(self._pictures)))
        for row in own:
            judge = self._judges.setdefault(row.judge, _Judge())
            judge.until(self._rows)
            judge.answers.append(_code(row))
            for name, passed in row.criteria.items():
                if isinstance(passed, bool):
                    column = judge.criteria.setdefault(name, bytearray())
                    column.extend(bytes([ABSENT]) * (self._rows - len(column)))
                    column.append(int(passed))
        self._rows += 1
        self._keep_flips(own, cell)

    def tallies(self) -> list[JudgeTally]:
        """One for each judge, in the order of their first row."""
        picture, found = self._numbers(), []
        for name, judge in self._judges.items():
            judge.until(self._rows)
            answers = np.frombuffer(judge.answers, np.uint8)
            counted = Counter(dict(zip(*np.unique(answers, return_counts=True), strict=True)))
            criteria = {
                criterion: _rate(np.frombuffer(column, np.uint8), picture)
                for criterion, column in judge.criteria.items()
            }
            judged = sum(int(counted[code]) for code in (NO, YES, UNSCORED))
            found.append(
                JudgeTally(
                    name,
                    judged,
                    int(counted[SILENT]),
                    int(counted[UNSCORED]),
                    _rate(answers, picture),
                    criteria,
                )
            )
        return found

    def flips(self) -> list[Flip]:
        """Of every two judges the whole, then each modality, finding and direction in which both decided something."""
        picture, cell = self._numbers(), np.frombuffer(self._cell, np.uint16)
        found = []
        for first, second in combinations(self._judges, 2):
            columns = []
            for name in (first, second):
                self._judges[name].until(self._rows)
                columns.append(np.frombuffer(self._judges[name].answers, np.uint8))
            both = (columns[0] <= YES) & (columns[1] <= YES)
            for key, where in self._where(cell, both).items():
                one, other = (column[where] for column in columns)
                found.append(self._flip((first, second), key, one, other, picture[where]))
        return found

    def _where(
        self, cell: npt.NDArray[np.uint16], both: npt.NDArray[np.bool_]
    ) -> Mapping[tuple[str, str, str], Numbers]:
        """The rows of the whole and of each cell in which two judges decided something."""
        where = {EVERYWHERE: np.flatnonzero(both)}
        for key, number in sorted(self._cells.items()):
            own = np.flatnonzero(both & (cell == number))
            if len(own):
                where[key] = own
        return where

    def _flip(
        self, names: tuple[str, str], key: tuple[str, str, str], one: Codes, other: Codes, picture: Numbers
    ) -> Flip:
        whole = key == EVERYWHERE
        numbers = range(len(self._cells)) if whole else [self._cells[key]]
        kept = [flip for number in numbers for flip in self._flipped.get((*names, number), [])]
        kept.sort(key=lambda flip: (flip[0].task, flip[0].generation, flip[0].round))
        return Flip(
            *names,
            *key,
            both=int(((one == YES) & (other == YES)).sum()),
            first_only=int(((one == YES) & (other == NO)).sum()),
            second_only=int(((one == NO) & (other == YES)).sum()),
            neither=int(((one == NO) & (other == NO)).sum()),
            rate=_rate((one != other).astype(np.uint8), picture),
            kappa=cohen_kappa(one.tolist(), other.tolist(), clusters=picture.tolist())
            if whole and len(one)
            else None,
            pictures=tuple(kept[:SHOWN]),
        )

    def _keep_flips(self, own: Sequence[JudgedRow], cell: int) -> None:
        decided = [row for row in own if row.qualified is not None]
        for one, other in combinations(decided, 2):
            if one.qualified != other.qualified:
                kept = self._flipped[one.judge, other.judge, cell]
                if len(kept) < SHOWN:
                    kept.append((one, bool(one.qualified)))

    def _numbers(self) -> Numbers:
        return np.frombuffer(self._picture, np.uint32).astype(np.int64)


def _code(row: JudgedRow) -> int:
    if not row.judged:
        return SILENT
    return UNSCORED if row.qualified is None else int(row.qualified)


def _rate(answers: Codes, picture: Numbers) -> Rate:
    """The share of yes among yes and no, over pictures."""
    decided = answers <= YES
    if not decided.any():
        return clustered_rate({})
    of = np.bincount(picture[decided])
    yes = np.bincount(picture[decided & (answers == YES)], minlength=len(of))
    seen = np.stack([yes, of], axis=1)[of > 0]
    patterns, times = np.unique(seen, axis=0, return_counts=True)
    return clustered_rate(
        {(int(s), int(n)): int(count) for (s, n), count in zip(patterns, times, strict=True)}
    )
