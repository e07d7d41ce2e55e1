"""The journal's tables, their version, and the steps that bring an older journal forward."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from plantain.journal.errors import NewerJournal, NotARun, OlderJournal
from plantain.journal.verdicts import FROM_COLUMNS, VERDICTS, json_text

VERSION = 4
APPLICATION_ID = 0x706C6E74
"""Marks the SQLite file as ours ("plnt"), so that another program's database is told apart."""

TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE session(
  id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL,
  started_at TEXT NOT NULL, ended_at TEXT,
  replayed INTEGER NOT NULL DEFAULT 0, peak_rss_mb REAL, detail TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE TABLE blob(
  sha256 TEXT PRIMARY KEY, bytes INTEGER NOT NULL, media_type TEXT NOT NULL, pixel_sha256 TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE image(
  id TEXT PRIMARY KEY, record TEXT NOT NULL, prepared TEXT NOT NULL REFERENCES blob(sha256)
) STRICT, WITHOUT ROWID;

CREATE TABLE task(
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, image_id TEXT NOT NULL,
  modality TEXT NOT NULL, finding TEXT NOT NULL, direction TEXT NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT 'pending',
  round INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX task_state ON task(state, id);

CREATE TABLE call(
  id INTEGER PRIMARY KEY, task TEXT NOT NULL REFERENCES task(id), generation INTEGER NOT NULL,
  round INTEGER NOT NULL, step TEXT NOT NULL, draw INTEGER NOT NULL, tries INTEGER NOT NULL,
  model TEXT NOT NULL, request_hash TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('started', 'settled')),
  outcome TEXT, reason TEXT NOT NULL DEFAULT '', retry_after REAL, fatal INTEGER NOT NULL DEFAULT 0,
  final INTEGER NOT NULL DEFAULT 0, served_model TEXT NOT NULL DEFAULT '',
  finish_reason TEXT NOT NULL DEFAULT '', usage TEXT NOT NULL DEFAULT '{}',
  reserved_usd REAL, cost_usd REAL, latency_s REAL, started_at TEXT NOT NULL,
  answer TEXT NOT NULL DEFAULT '', raw TEXT NOT NULL DEFAULT '',
  UNIQUE (task, generation, round, step, draw, tries)
) STRICT;
CREATE INDEX call_open ON call(id, reserved_usd) WHERE state = 'started';

CREATE TABLE attempt(
  task TEXT NOT NULL REFERENCES task(id), generation INTEGER NOT NULL, round INTEGER NOT NULL,
  instruction TEXT NOT NULL,
  edit_outcome TEXT, edit_reason TEXT NOT NULL DEFAULT '', edit_retry_after REAL,
  edit_fatal INTEGER NOT NULL DEFAULT 0,
  edited TEXT REFERENCES blob(sha256), raw TEXT REFERENCES blob(sha256), mask TEXT REFERENCES blob(sha256),
  support TEXT,
  judge_outcome TEXT, judge_reason TEXT NOT NULL DEFAULT '', judge_retry_after REAL,
  judge_fatal INTEGER NOT NULL DEFAULT 0,
  superseded INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task, generation, round)
) STRICT, WITHOUT ROWID;

CREATE TABLE score(
  task TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL, metric TEXT NOT NULL,
  value REAL, reason TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY (task, generation, round, metric),
  FOREIGN KEY (task, generation, round) REFERENCES attempt(task, generation, round)
) STRICT, WITHOUT ROWID;

CREATE TABLE tally(
  what TEXT NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL, total REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (what, key)
) STRICT, WITHOUT ROWID;
"""


BATCHES = """
CREATE TABLE batch_job(
  key TEXT PRIMARY KEY, model TEXT NOT NULL, path TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('formed', 'running', 'ended', 'closed')),
  provider_id TEXT NOT NULL DEFAULT '', formed_at TEXT NOT NULL, ended_at TEXT,
  reason TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_job_open ON batch_job(key) WHERE state <> 'closed';

CREATE TABLE batch_request(
  key TEXT PRIMARY KEY, call INTEGER NOT NULL REFERENCES call(id), job TEXT REFERENCES batch_job(key)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_request_call ON batch_request(call);
CREATE INDEX batch_request_job ON batch_request(job);
"""
"""Jobs at a provider and the requests in them. A request without a job was never sent. A job is `formed` before the
provider hears of it, `running` once it has an id there, `ended` when its answers are here or there are none, `closed`
when all calls that it served are settled."""


SENT = """
CREATE TABLE destination(
  id INTEGER PRIMARY KEY, model TEXT NOT NULL, address TEXT NOT NULL, reach TEXT NOT NULL, agreement TEXT NOT NULL,
  UNIQUE (model, address, reach, agreement)
) STRICT;
CREATE TABLE sent(
  id INTEGER PRIMARY KEY, picture TEXT NOT NULL, image TEXT NOT NULL,
  destination INTEGER NOT NULL REFERENCES destination(id), call INTEGER, at TEXT NOT NULL
) STRICT;
CREATE INDEX sent_picture ON sent(picture);
CREATE INDEX sent_image ON sent(image);
CREATE INDEX image_prepared ON image(prepared);
"""
"""A row of `sent` is one picture in one request, for each source that shows in it; it is durable before the request
goes out. `image` is "" where the source was withdrawn since, or is not known (on the premises only)."""

MONEY = """
CREATE TABLE session_time(session INTEGER PRIMARY KEY, seconds REAL NOT NULL) STRICT;
CREATE INDEX call_lost ON call(model, step, reserved_usd) WHERE cost_usd IS NULL AND reserved_usd IS NOT NULL;
"""
"""How long each process worked, recorded while it works, since a killed one cannot do so at its end."""

_ERRORS_ARE_FREE = """
UPDATE call SET cost_usd = 0 WHERE state = 'settled' AND cost_usd IS NULL AND reserved_usd IS NOT NULL
  AND substr(reason, 1, 4) GLOB '[45][0-9][0-9][ :]' AND substr(reason, 1, 3) NOT IN ('408', '499', '504', '524');
"""
"""Runs of the first edition held the most that a call can cost for every answer with an error status."""


def _count(what: str, key: str, step: int = 1, total: str = "0") -> str:
    """SQL that moves one counter; upsert, because counters appear as their keys do."""
    return (
        f"INSERT INTO tally(what, key, n, total) VALUES ({what}, {key}, {step}, {total}) "
        "ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total;"
    )


def _task_counts(row: str, step: int) -> str:
    return _count(f"'task.' || {row}.kind", f"{row}.state", step) + _count(
        "'round'", f"CASE {row}.state WHEN 'success' THEN CAST({row}.round AS TEXT) ELSE '' END", step
    )


def _call_counts(row: str, step: int) -> str:
    cost = f"COALESCE({row}.cost_usd, 0)" if step > 0 else f"-COALESCE({row}.cost_usd, 0)"
    return _count("'call'", f"COALESCE({row}.outcome, 'open')", step, cost)


def _attempt_counts(row: str, step: int) -> str:
    return _count("'attempt'", f"CASE {row}.superseded WHEN 0 THEN 'current' ELSE 'superseded' END", step)


TALLIES = f"""
CREATE TRIGGER task_added AFTER INSERT ON task BEGIN {_task_counts("NEW", 1)} END;
CREATE TRIGGER task_moved AFTER UPDATE OF kind, state, round ON task
  BEGIN {_task_counts("OLD", -1)} {_task_counts("NEW", 1)} END;
CREATE TRIGGER task_gone AFTER DELETE ON task BEGIN {_task_counts("OLD", -1)} END;
CREATE TRIGGER call_added AFTER INSERT ON call BEGIN {_call_counts("NEW", 1)} END;
CREATE TRIGGER call_moved AFTER UPDATE OF outcome, cost_usd ON call
  BEGIN {_call_counts("OLD", -1)} {_call_counts("NEW", 1)} END;
CREATE TRIGGER call_gone AFTER DELETE ON call BEGIN {_call_counts("OLD", -1)} END;
CREATE TRIGGER attempt_added AFTER INSERT ON attempt BEGIN {_attempt_counts("NEW", 1)} END;
CREATE TRIGGER attempt_moved AFTER UPDATE OF superseded ON attempt
  BEGIN {_attempt_counts("OLD", -1)} {_attempt_counts("NEW", 1)} END;
CREATE TRIGGER attempt_gone AFTER DELETE ON attempt BEGIN {_attempt_counts("OLD", -1)} END;
CREATE TRIGGER blob_added AFTER INSERT ON blob
  BEGIN {_count("'blob'", "NEW.media_type", 1, "NEW.bytes")} END;
CREATE TRIGGER blob_gone AFTER DELETE ON blob
  BEGIN {_count("'blob'", "OLD.media_type", -1, "-OLD.bytes")} END;
"""
"""Counters kept by triggers, inside the transaction that changes the rows: `status` on a million tasks reads
a dozen rows instead of gigabytes, and no writer can forget one."""

MIGRATIONS: Mapping[int, str] = {
    1: "ALTER TABLE blob ADD COLUMN pixel_sha256 TEXT;",
    2: BATCHES,
    3: FROM_COLUMNS + SENT + MONEY + _ERRORS_ARE_FREE,
}
"""SQL that turns version n into n + 1, by n. It runs in one transaction with the change of the version."""


def create_tables(connection: sqlite3.Connection) -> None:
    """Makes an empty journal of the current version; the caller fills `meta` and commits."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    _run_script(connection, TABLES + VERDICTS + BATCHES + SENT + MONEY + TALLIES)
    connection.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(VERSION),))


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The journal's schema version. Raises NotARun for a file of another kind."""
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "no such table" not in str(error):
            raise  # a full disk or a busy file says nothing about what the file is
        raise NotARun(f"{path} is not a journal of plantain: {error}") from error
    if application != APPLICATION_ID or row is None or not str(row[0]).isdecimal():
        raise NotARun(f"{path} is a database, but not a journal of plantain")
    return int(row[0])


def refuse_newer(found: int, path: Path, known: int = VERSION) -> None:
    """Raises NewerJournal for a version that this code was not written for."""
    if found > known:
        raise NewerJournal(
            f"{path} has schema version {found}, this plantain knows up to {known}: install a newer plantain"
        )


def check_steps(found: int, path: Path, steps: Mapping[int, str] = MIGRATIONS, known: int = VERSION) -> None:
    """Raises NewerJournal or OlderJournal unless a journal of that version can be brought to `known`."""
    refuse_newer(found, path, known)
    if any(version not in steps for version in range(found, known)):
        raise OlderJournal(
            f"{path} has schema version {found}; this plantain cannot bring it forward to {known}"
        )


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    steps: Mapping[int, str] = MIGRATIONS,
    known: int = VERSION,
) -> int:
    """Brings the journal forward to `known`, each step in its own transaction; returns the old version."""
    found = version_of(connection, path)
    check_steps(found, path, steps, known)
    connection.create_function("json_text", 2, json_text, deterministic=True)
    for version in range(found, known):
        connection.execute("BEGIN IMMEDIATE")
        try:
            _run_script(connection, steps[version])
            connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(version + 1),))
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return found


def _run_script(connection: sqlite3.Connection, script: str) -> None:
    """Runs statements one by one; `executescript` would commit first and break the transaction."""
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            if statement.strip(" \n;"):
                connection.execute(statement)
            statement = ""
