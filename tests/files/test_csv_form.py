"""Cells that a spreadsheet would run are defused, and every cell comes back as it was."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plantain.files.csv_form import defused, read_csv, written_csv

RUNS = (
    *(
        "=1+1",
        '=cmd|"/C calc"!A0',
        "+SUM(A1)",
        "-2+3",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1",
        "=HYPERLINK(1)",
    ),
    *("-5 mm", "+49 30 1", "\uff1d1+1", "'=1", "''=1", "-inf+1", "--", "@"),
)
STAYS = (
    "",
    "-",
    "-5",
    "+5",
    "-0.25",
    "1e-9",
    "-1E+3",
    "nan",
    "-inf",
    "5%",
    "-5%",
    "a=b",
    "it's",
    "'quoted'",
    "'",
)


@pytest.mark.parametrize("cell", RUNS)
def test_a_cell_that_runs_is_defused(cell: str) -> None:
    said = written_csv([["id", cell]])
    (row,) = csv.reader(io.StringIO(said, newline=""))
    assert row[1] == f"'{cell}"
    assert list(read_csv(io.StringIO(said, newline=""))) == [["id", cell]]


@pytest.mark.parametrize("cell", STAYS)
def test_numbers_and_plain_words_stay_as_they_are(cell: str) -> None:
    assert defused(cell) == cell


def test_numbers_that_are_no_text_are_written_as_numbers() -> None:
    assert written_csv([[-1, 2.5, None, True]]) == "-1,2.5,,True\n"


@given(
    st.lists(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=2), max_size=5)
)
def test_every_cell_comes_back(rows: list[list[str]]) -> None:
    assert list(read_csv(io.StringIO(written_csv(rows), newline=""))) == rows
