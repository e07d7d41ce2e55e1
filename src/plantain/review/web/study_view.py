"""A reader study in the viewer: cases with the names of their models, and every answer."""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass
from pathlib import Path

from plantain.files.opening import read_inside
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.rows import GROUND_TRUTH, Row, rows_of
from plantain.review.study import IMAGES, ORIGINAL, Block, Case, ItemKind, open_study
from plantain.review.web.run_view import Thumbnails

PAGE = 50


@dataclass(frozen=True, slots=True)
class ViewedCase:
    """A case with the answers to it.

    Attributes:
        rows: the answers, by block, item and reader.
        differ: True if readers disagree on one of the questions asked.
    """

    case: Case
    rows: tuple[Row, ...]
    differ: bool


class StudyView:
    """A study in the viewer, also while it is being read."""

    def __init__(self, folder: Path) -> None:
        self.study = open_study(folder)
        self.name = folder.resolve().name
        self.title = self.study.name
        self.ratings = Ratings.open(self.study)
        self.thumbnails = Thumbnails()
        self.blocks: dict[str, Block] = {block.id: block for block in self.study.blocks}
        self._files = {
            name for case in self.study.cases for name in (*case.images.values(), case.ground_truth)
        }
        self._rows: tuple[int, dict[str, list[Row]]] = (-1, {})
        self._lock = threading.Lock()

    def rows(self) -> dict[str, list[Row]]:
        """Return the answers that count, by case id: the newest per item, for training the first."""
        with self._lock:
            last = self.ratings.last()
            if last != self._rows[0]:
                found: dict[str, list[Row]] = {}
                for row in rows_of(self.study, self.ratings):
                    found.setdefault(row.case, []).append(row)
                for rows in found.values():
                    rows.sort(key=lambda row: (row.block, row.item, row.reader))
                self._rows = (last, found)
            return self._rows[1]

    def cases(self) -> list[ViewedCase]:
        """Return the cases with their answers, in the study's order."""
        rows = self.rows()
        return [_viewed(case, rows.get(case.id, [])) for case in self.study.cases]

    def case(self, name: str) -> ViewedCase:
        """Return one case with all its answers. Raise InputError for an unknown one."""
        case = self.study.by_case.get(name)
        if case is None:
            raise InputError(f"{self.study.folder}: no case {name[:40]!r}")
        return _viewed(case, self.rows().get(name, []))

    def read(self, file: str) -> bytes:
        """Return an image of the study by its name. Raise InputError if no case has it."""
        if not file or file not in self._files:
            raise InputError("no such image")
        return read_inside(self.study.folder, self.study.folder / IMAGES / file)

    def region(self, item: str, reader: str) -> bytes:
        """Return the region that a reader drew, as a PNG. Raise InputError if there is none."""
        block_item = self.study.by_item.get(item)
        rows = self.rows().get(block_item[1].case, []) if block_item else []
        for row in rows:
            if (row.item, row.reader) == (item, reader) and row.value.get("mask"):
                return base64.b64decode(row.value["mask"])
        raise InputError("no such region")

    def outputs(self, case: Case) -> list[tuple[str, str]]:
        """Return (name, file) of each model's image and of the ground truth."""
        found = [(model, file) for model, file in case.images.items() if model != ORIGINAL]
        return [*found, (GROUND_TRUTH, case.ground_truth)] if case.ground_truth else found


def _viewed(case: Case, rows: list[Row]) -> ViewedCase:
    return ViewedCase(case, tuple(rows), _differ(rows))


def _differ(rows: list[Row]) -> bool:
    """Return True if two readers answered one main item differently."""
    by_item: dict[str, set[str]] = {}
    for row in rows:
        if row.kind is ItemKind.MAIN and not row.cannot:
            by_item.setdefault(row.item, set()).add(row.answer)
    return any(len(answers) > 1 for answers in by_item.values())
