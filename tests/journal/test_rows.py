"""The tables, and files that are no journal of this version."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.examples import Do
from plantain.journal import Journal, JournalReader
from plantain.journal.rows import SCHEMA_VERSION, from_json, to_json
from plantain.records import Criterion, CriterionResult, FailureCode, InputError, Observations


@pytest.fixture
def run(do: Do, journal: Journal, tmp_path: Path) -> Path:
    """A closed run with three pending tasks."""
    do(journal.close())
    return tmp_path


def bytes_of(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_no_column_can_hold_an_image(run: Path) -> None:
    with JournalReader.open(run) as reader:
        tables = reader.connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        ).fetchall()
        kinds = {
            column[2]
            for name, _ in tables
            for column in reader.connection.execute(f"PRAGMA table_info({name})")
        }
    assert kinds == {"TEXT", "INTEGER", "REAL"}  # STRICT refuses bytes in each of them
    assert all("STRICT" in sql for _, sql in tables)


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, SCHEMA_VERSION - 1])
def test_journal_of_another_version_is_refused_and_left_alone(run: Path, version: int) -> None:
    with sqlite3.connect(run / "journal.sqlite") as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(version),))
    connection.close()
    before = bytes_of(run)
    for opening in (Journal.open, JournalReader.open):
        with pytest.raises(InputError, match=f"schema version {version}, .* reads version {SCHEMA_VERSION}"):
            opening(run)
    after = bytes_of(run)
    assert {name: after[name] for name in before} == before
    # A look at a WAL database leaves SQLite's own index and an empty log; nothing else was made.
    assert {Path(name).name for name in after.keys() - before.keys()} <= {
        "journal.sqlite-shm",
        "journal.sqlite-wal",
    }


def test_database_of_another_program_is_not_a_run(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.execute("CREATE TABLE meta(key TEXT, value TEXT)")
        connection.execute("INSERT INTO meta VALUES ('schema_version', '1')")
    connection.close()
    with pytest.raises(InputError, match="not a journal of plantain"):
        Journal.open(tmp_path)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
real = st.floats(allow_nan=False, allow_infinity=False)
results = st.builds(
    CriterionResult,
    st.none() | st.booleans(),
    st.none() | real,
    st.lists(st.sampled_from(FailureCode)).map(tuple),
    text,
    st.none() | real,
)
observations = st.builds(
    Observations,
    st.permutations(list(Criterion)).flatmap(
        lambda names: st.fixed_dictionaries(dict.fromkeys(names, results))
    ),
    st.dictionaries(st.sampled_from(["has_disease", "other_disease", "artefact"]), st.booleans()),
    st.none() | st.booleans(),
    text,
    text,
)


@given(observations)
def test_observations_round_trip_keeps_order(seen: Observations) -> None:
    back = from_json(Observations, to_json(seen))
    assert back == seen
    assert list(back.criteria) == list(seen.criteria)  # a replayed prompt lists them as the first did
