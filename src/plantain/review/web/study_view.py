"""A reader study in the viewer: cases with the names of their models, and every answer."""

from __future__ import annotations

from pathlib import Path

from plantain.files.opening import read_inside
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.rows import GROUND_TRUTH, Row, rows_of
from plantain.review.study import IMAGES, ORIGINAL, Block, Case, open_study

PAGE = 50


class StudyView:
    """A study in the viewer, also while it is being read."""

    def __init__(self, folder: Path) -> None:
        self.study = open_study(folder)
        self.name = folder.resolve().name
        self.title = self.study.name
        self.ratings = Ratings.open(self.study)
        self.blocks: dict[str, Block] = {block.id: block for block in self.study.blocks}
        self._files = {
            name for case in self.study.cases for name in (*case.images.values(), case.ground_truth)
        }

    def rows(self) -> dict[str, list[Row]]:
        """Return the answers that count, by case id: the newest per item."""
        found: dict[str, list[Row]] = {}
        for row in sorted(
            rows_of(self.study, self.ratings), key=lambda row: (row.block, row.item, row.reader)
        ):
            found.setdefault(row.case, []).append(row)
        return found

    def case(self, name: str) -> tuple[Case, list[Row]]:
        """Return a case with its answers, by block, item and reader. Raise InputError for an unknown one."""
        case = self.study.by_case.get(name)
        if case is None:
            raise InputError(f"{self.study.folder}: no case {name[:40]!r}")
        return case, self.rows().get(name, [])

    def read(self, file: str) -> bytes:
        """Return an image of the study by its name. Raise InputError if no case has it."""
        if not file or file not in self._files:
            raise InputError("no such image")
        return read_inside(self.study.folder, self.study.folder / IMAGES / file)

    def outputs(self, case: Case) -> list[tuple[str, str]]:
        """Return (name, file) of each model's image and of the ground truth."""
        found = [(model, file) for model, file in case.images.items() if model != ORIGINAL]
        return [*found, (GROUND_TRUTH, case.ground_truth)] if case.ground_truth else found
