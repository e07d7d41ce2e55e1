"""The journal's tables and their version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from plantain.records import InputError

VERSION = 1
APPLICATION_ID = 0x706C6E74
"""Marks the SQLite file as ours ("plnt")."""

TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- One row for each process that wrote. `seconds` is recorded while it works: a killed one cannot do so at its end.
CREATE TABLE session(
  id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL,
  started_at TEXT NOT NULL, ended_at TEXT, seconds REAL NOT NULL DEFAULT 0,
  replayed INTEGER NOT NULL DEFAULT 0, peak_rss_mb REAL, detail TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE TABLE blob(
  sha256 TEXT PRIMARY KEY, bytes INTEGER NOT NULL, media_type TEXT NOT NULL, pixel_sha256 TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE image(
  id TEXT PRIMARY KEY, record TEXT NOT NULL, prepared TEXT NOT NULL REFERENCES blob(sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX image_prepared ON image(prepared);

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
CREATE INDEX call_cost ON call(outcome, cost_usd);
CREATE INDEX call_lost ON call(model, step, reserved_usd) WHERE cost_usd IS NULL AND reserved_usd IS NOT NULL;

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

-- A decision is null if undecided.
CREATE TABLE verdict(
  task TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL,
  judge TEXT NOT NULL, draw INTEGER NOT NULL, decisive INTEGER NOT NULL,
  opinion INTEGER, reason TEXT NOT NULL, differences TEXT NOT NULL DEFAULT '',
  qualified_all_pass INTEGER, qualified_weighted INTEGER, score REAL, qualified INTEGER,
  PRIMARY KEY (task, generation, round, judge, draw),
  FOREIGN KEY (task, generation, round) REFERENCES attempt(task, generation, round)
) STRICT, WITHOUT ROWID;

-- A criterion has `passed`, a `value` if its scale is one of numbers, and neither if it is unscored; `reason` is the
-- judge's evidence, or the reason for a missing score. A fact, which decides nothing, has its yes or no as `value`.
CREATE TABLE criterion(
  task TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL,
  judge TEXT NOT NULL, draw INTEGER NOT NULL, name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('criterion', 'fact')), place INTEGER NOT NULL,
  passed INTEGER, value REAL, confidence REAL,
  codes TEXT NOT NULL DEFAULT '[]', reason TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (task, generation, round, judge, draw, name),
  FOREIGN KEY (task, generation, round, judge, draw) REFERENCES verdict(task, generation, round, judge, draw)
) STRICT, WITHOUT ROWID;

CREATE TABLE score(
  task TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL, metric TEXT NOT NULL,
  value REAL, reason TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY (task, generation, round, metric),
  FOREIGN KEY (task, generation, round) REFERENCES attempt(task, generation, round)
) STRICT, WITHOUT ROWID;

-- Jobs at a provider and the requests in them. A request without a job was never sent. A job is `formed` before the
-- provider hears of it, `running` once it has an id there, `ended` when its answers are here or there are none,
-- `closed` when all calls that it served are settled.
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

-- A row of `sent` is one image in one request, for each source that shows in it; it is durable before the request goes
-- out. `image` is "" if the source was withdrawn since, or is not known (on the premises only).
CREATE TABLE destination(
  id INTEGER PRIMARY KEY, model TEXT NOT NULL, address TEXT NOT NULL, reach TEXT NOT NULL, agreement TEXT NOT NULL,
  UNIQUE (model, address, reach, agreement)
) STRICT;
CREATE TABLE sent(
  id INTEGER PRIMARY KEY, file TEXT NOT NULL, image TEXT NOT NULL,
  destination INTEGER NOT NULL REFERENCES destination(id), call INTEGER, at TEXT NOT NULL
) STRICT;
CREATE INDEX sent_file ON sent(file);
CREATE INDEX sent_image ON sent(image);
"""


def create_tables(connection: sqlite3.Connection) -> None:
    """Make an empty journal in one transaction; the caller fills `meta`."""
    connection.executescript(
        f"PRAGMA application_id = {APPLICATION_ID}; BEGIN; {TABLES} "
        f"INSERT INTO meta VALUES ('schema_version', '{VERSION}'); COMMIT;"
    )


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise InputError for a file of another kind, or a journal of another version."""
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "no such table" not in str(error):
            raise  # a full disk or a busy file: its kind is unknown
        raise InputError(f"{path} is not a journal of plantain: {error}") from error
    if application != APPLICATION_ID or row is None:
        raise InputError(f"{path} is a database, but not a journal of plantain")
    if row[0] != str(VERSION):
        raise InputError(
            f"{path} has schema version {row[0]}, this plantain reads version {VERSION}: use the plantain that made it"
        )
