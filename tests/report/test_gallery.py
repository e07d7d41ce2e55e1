"""Which tasks a gallery shows, and what it says of them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from plantain.journal import JournalReader
from plantain.records.counts import shared_out
from plantain.report.gallery import ORDER, THUMBNAIL, select, story_of


@given(st.dictionaries(st.sampled_from(ORDER), st.integers(0, 500), max_size=5), st.integers(0, 300))
def test_places_are_shared_fairly(totals: dict[str, int], size: int) -> None:
    quotas = shared_out(totals, size)
    assert sum(quotas.values()) == min(size, sum(totals.values()))
    assert all(quota <= totals[state] for state, quota in quotas.items())
    # nobody who has tasks left over got less than another by more than one place
    hungry = [quotas[s] for s in quotas if quotas[s] < totals[s]]
    assert not hungry or max(quotas.values()) - min(hungry) <= max(1, len(quotas))


def test_selection_is_seeded_and_ordered(run: Path) -> None:
    with JournalReader.open(run) as reader:
        first = select(reader, 4, seed=1)
        assert first == select(reader, 4, seed=1)
        assert list(first.ids) == sorted(first.ids) and not first.complete
        assert select(reader, 60, seed=1).complete
        # 11 tasks, one of which nothing has happened to
        assert len(select(reader, 60, seed=1).ids) == 10


def test_panel_members_go_with_their_round(run: Path) -> None:
    with JournalReader.open(run) as reader:
        amd = next(row for row in reader.tasks() if row.task.finding == "AMD")
        story = story_of(reader, amd, THUMBNAIL)
    assert [len(told.panel) for told in story.rounds] == [2, 3]
    assert [told.attempt.verdict.judge for told in story.rounds if told.attempt.verdict] == ["panel", "panel"]


def test_synthetic_source_is_named(run: Path) -> None:
    with JournalReader.open(run) as reader:
        remarks = {
            (row.task.finding, row.task.direction.value): story_of(reader, row, THUMBNAIL).remark
            for row in reader.tasks()
        }
    assert remarks["Pneumothorax", "remove"].startswith("Removes a finding that no patient had")
    assert remarks["Pneumothorax", "add"] == "" and remarks["Glaucoma", "add"].startswith("Control")
