"""Cells that a spreadsheet would run are defused, and every cell comes back as it was."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plantain.files.csv_form import defused, read_csv, written_csv

RUNS = ("=1+1", "+SUM(A1)", "-2+3", "@SUM(1)", "\t=1", "\n=1", " =1", "\uff1d1+1", "'=1", "-5 mm")
STAYS = ("", "-", "-5", "1e-9", "nan", "-5%", "a=b", "it's")


@pytest.mark.parametrize("cell", RUNS)
def test_a_cell_that_runs_is_defused(cell: str) -> None:
    said = written_csv([["id", cell]])
    (row,) = csv.reader(io.StringIO(said, newline=""))
    assert row[1] == f"'{cell}"
    assert list(read_csv(io.StringIO(said, newline=""))) == [["id", cell]]


@pytest.mark.parametrize("cell", STAYS)
def test_numbers_and_plain_words_stay_as_they_are(cell: str) -> None:
    assert defused(cell) == cell


@given(
    st.lists(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=2), max_size=5)
)
def test_every_cell_comes_back(rows: list[list[str]]) -> None:
    assert list(read_csv(io.StringIO(written_csv(rows), newline=""))) == rows
