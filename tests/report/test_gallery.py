"""Which tasks a gallery shows, and what it says of them."""

from __future__ import annotations

from pathlib import Path

from plantain.journal import JournalReader
from plantain.report.gallery import THUMBNAIL, select, story_of


def test_selection_is_seeded_and_ordered(paper_run: Path) -> None:
    with JournalReader.open(paper_run) as reader:
        first = select(reader, 4, seed=1)
        assert first == select(reader, 4, seed=1)
        assert list(first.ids) == sorted(first.ids) and not first.complete
        assert select(reader, 60, seed=1).complete
        # 11 tasks, one of which nothing has happened to
        assert len(select(reader, 60, seed=1).ids) == 10


def test_synthetic_source_is_named(paper_run: Path) -> None:
    with JournalReader.open(paper_run) as reader:
        remarks = {
            (row.task.finding, row.task.direction.value): story_of(reader, row, THUMBNAIL).remark
            for row in reader.tasks()
        }
    assert remarks["Pneumothorax", "remove"].startswith("Removes a finding that no patient had")
    assert remarks["Pneumothorax", "add"] == "" and remarks["Glaucoma", "add"].startswith("Control")
