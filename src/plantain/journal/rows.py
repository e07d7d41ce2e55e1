"""The journal's tables, the records that it stores and returns, their JSON, and the errors of a run folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import orjson
from pydantic import TypeAdapter

from plantain.records import (
    Attempt,
    CallKey,
    CriterionResult,
    EditTask,
    InputError,
    Observations,
    Outcome,
    Score,
    TaskState,
    Usage,
    Verdict,
)


class RunLocked(InputError):
    """Raised if another process writes to a run; the message names its pid and host."""


class BadBlob(InputError):
    """Raised for a blob that is missing from the store, or whose bytes have changed."""


class DiskFull(InputError):
    """Raised if a run's disk is full. Recorded rows are intact; the run can be resumed."""


JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


@dataclass(frozen=True)
class RunHeader:
    """The header of a run: a unique id, name and seed of its recipe, and the plantain version that created it.

    `frozen` is the part of the recipe that a resumed run must repeat, as JSON.
    """

    run_id: str
    name: str
    seed: int
    frozen: dict[str, JsonValue]
    code_version: str


@dataclass(frozen=True, slots=True)
class BlobRef:
    """A file in the blob store: hash, size, type, and of an edited image the hash of its decoded pixels, if known."""

    sha256: str
    bytes: int
    media_type: str
    pixel_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class StartedCall:
    """One try (from 1) of a call that is about to be sent.

    `request_hash` is the SHA-256 of the request, images by their hashes; `reserved_usd` the maximum cost, which counts
    as spent until the call is settled.
    """

    key: CallKey
    tries: int
    model: str
    request_hash: str
    reserved_usd: float | None = None


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict on one attempt, number `draw` of its judge. Of a panel, only the joint verdict is decisive."""

    task_id: str
    generation: int
    round: int
    verdict: Verdict
    draw: int = 0
    decisive: bool = True


@dataclass(frozen=True, slots=True)
class StoredScore:
    """One metric's score of one attempt; `detail` contains the metric's further measurements."""

    task_id: str
    generation: int
    round: int
    metric: str
    score: Score
    detail: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """A closed task with its whole history, made by another run, without calls.

    `attempts` are of every generation (their verdicts are ignored); `blobs` describes every hash that an attempt names,
    whose bytes may be missing from the store.
    """

    row: TaskRow
    attempts: tuple[Attempt, ...]
    verdicts: tuple[StoredVerdict, ...] = ()
    scores: tuple[StoredScore, ...] = ()
    blobs: tuple[BlobRef, ...] = ()


@dataclass(frozen=True, slots=True)
class CallResult:
    """The results of one answered call, stored in one transaction.

    Attributes:
        call_id: the id that `Journal.start_call` returned.
        outcome: how the try ended.
        final: True if this answer is used; a replay returns it.
        usage: tokens and images, and the model that answered.
        cost_usd: cost in US dollars, None if unknown.
        latency_s: seconds from sending to answer.
        answer: text that a replay returns; images by their hashes.
        raw: the provider's answer as text, without image bytes.
        blobs: references from `put_blob` for every hash that `attempt` names.
        attempt: the attempt's new row, inserted or replaced whole; its verdict is ignored.
        verdicts, scores: verdicts and scores of this attempt.
    """

    call_id: int
    outcome: Outcome
    final: bool
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    latency_s: float | None = None
    answer: str = ""
    raw: str = ""
    blobs: tuple[BlobRef, ...] = ()
    attempt: Attempt | None = None
    verdicts: tuple[StoredVerdict, ...] = ()
    scores: tuple[StoredScore, ...] = ()

    def with_edit(
        self, attempt: Attempt, raw: BlobRef, image: BlobRef, mask: BlobRef | None, **notes: str
    ) -> CallResult:
        """Add the blobs of an edit to the result: `raw` as received, the `image` to judge, the edit's `mask`."""
        kept = replace(attempt, edited=image.sha256, raw=raw.sha256, mask=mask.sha256 if mask else None)
        answer = {name: getattr(kept, name) for name in ("edited", "raw", "mask", "support")} | notes
        blobs = dict.fromkeys(blob for blob in (raw, image, mask) if blob is not None)
        return replace(self, answer=orjson.dumps(answer).decode(), attempt=kept, blobs=tuple(blobs))


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task and its state: `generation` counts retries, `round` is the last one made, `reason` says why it failed."""

    task: EditTask
    generation: int
    state: TaskState
    round: int
    reason: str

    @property
    def id(self) -> str:
        return self.task.id


@dataclass(frozen=True, slots=True)
class CallRow:
    """Try number `tries` (from 1) of one call as journalled; `outcome` and `latency_s` are None while it is open.

    A `final` try is the one whose answer is used and replayed. `answer` is the text that a replay returns, `raw` the
    provider's. `reserved_usd`, the maximum cost, is None without a price, `cost_usd` if the cost is unknown.
    """

    id: int
    key: CallKey
    tries: int
    model: str
    request_hash: str
    outcome: Outcome | None
    final: bool
    usage: Usage
    reserved_usd: float | None
    cost_usd: float | None
    latency_s: float | None
    started_at: str
    answer: str
    raw: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One process that wrote to the run; times are in UTC, `ended_at` is None if it was killed or still runs.

    `replayed` counts recorded answers that it reused.
    """

    id: int
    pid: int
    host: str
    started_at: str
    ended_at: str | None
    replayed: int


T = TypeVar("T")

_OPTIONS = orjson.OPT_NON_STR_KEYS
"""Keys keep their order: a replayed history must read exactly as it did the first time."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def clean_text(text: str) -> str:
    """Replace lone surrogates, which JSON can contain but UTF-8 cannot, by "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def dumps(record: object) -> bytes:
    """Encode a record, or a collection of records, as compact JSON."""
    return orjson.dumps(record, option=_OPTIONS)


def to_json(record: object) -> str:
    """Encode a record as compact JSON text with lone surrogates replaced by "?". Numbers must be finite."""
    try:
        return dumps(record).decode()
    except orjson.JSONEncodeError:
        return dumps(_clean(record)).decode()


def from_json(kind: type[T], text: str) -> T:
    """Decode a record of class `kind` from JSON. Raise ValueError if a field is invalid."""
    record: T = _adapter(kind).validate_json(text)  # type: ignore[arg-type]  # a class is hashable
    return record


def dict_from_json(text: str) -> dict[str, JsonValue]:
    """Decode a JSON object to a dictionary. Raise ValueError for any other JSON."""
    value: JsonValue = orjson.loads(text)
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def _clean(value: Any) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: _clean(getattr(value, field.name)) for field in fields(value)}
    return value


SCHEMA_VERSION = 1
APPLICATION_ID = 0x706C6E74
"""Marks the SQLite file as ours ("plnt")."""

TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- One row for each process that wrote; a killed one has no end.
CREATE TABLE session(
  id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL,
  started_at TEXT NOT NULL, ended_at TEXT, replayed INTEGER NOT NULL DEFAULT 0
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
    """Create the tables of an empty journal in one transaction; the caller fills `meta`."""
    connection.executescript(
        f"PRAGMA application_id = {APPLICATION_ID}; BEGIN; {TABLES} "
        f"INSERT INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}'); COMMIT;"
    )


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a database is a journal of this version. Raise InputError otherwise."""
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "no such table" not in str(error):
            raise  # a full disk or a busy file: its kind is unknown
        raise InputError(f"{path} is not a journal of plantain: {error}") from error
    if application != APPLICATION_ID or row is None:
        raise InputError(f"{path} is a database, but not a journal of plantain")
    if row[0] != str(SCHEMA_VERSION):
        raise InputError(
            f"{path} has schema version {row[0]}, this plantain reads version {SCHEMA_VERSION}: use the plantain that "
            "made it"
        )


def stored_verdict(
    row: sqlite3.Row, results: list[tuple[str, str, int, float, float, str, str]]
) -> StoredVerdict:
    """Make a verdict from its row and the rows of its criteria and facts, as `read_verdicts` selects them."""
    criteria, facts = {}, {}
    for kind, name, passed, value, confidence, codes, reason in results:
        if kind == "fact":
            facts[name] = bool(value)
        else:
            codes_of = tuple(orjson.loads(codes))
            criteria[name] = CriterionResult(_decision(passed), confidence, codes_of, reason, value)
    seen = Observations(criteria, facts, _decision(row[6]), row[7], row[12])
    verdict = Verdict(row[3], seen, _decision(row[8]), _decision(row[9]), row[10], _decision(row[11]))
    return StoredVerdict(row[0], row[1], row[2], verdict, draw=row[4], decisive=bool(row[5]))


def _decision(value: int | None) -> bool | None:
    return None if value is None else bool(value)
