"""Records that the journal stores and returns, their JSON, and the errors of a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar

import orjson
from pydantic import TypeAdapter

from plantain.records import Attempt, CallKey, EditTask, InputError, Outcome, Score, TaskState, Usage, Verdict


class RunLocked(InputError):
    """Another process writes to this run; its pid and host are in the message."""


class BadBlob(InputError):
    """A blob is missing from the store, or its bytes are not those that were stored."""


class DiskFull(InputError):
    """The disk under the run is full. Recorded rows are intact; the run can be resumed."""


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
    """Bytes in the blob store, by SHA-256; of an edited image also the hash of its pixels, if known."""

    sha256: str
    bytes: int
    media_type: str
    pixel_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class StartedCall:
    """One try (from 1) of a call that is about to be sent.

    `request_hash` is the SHA-256 of the request, images by their hashes; `reserved_usd` the most that it may cost,
    which counts as spent until settled.
    """

    key: CallKey
    tries: int
    model: str
    request_hash: str
    reserved_usd: float | None = None


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict on one attempt. A single judge's is decisive; of a panel only its joint one is."""

    task_id: str
    generation: int
    round: int
    verdict: Verdict
    draw: int = 0
    decisive: bool = True


@dataclass(frozen=True, slots=True)
class StoredScore:
    """One metric of one attempt; a score without value keeps its reason."""

    task_id: str
    generation: int
    round: int
    metric: str
    score: Score
    detail: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """A closed task with its whole history, as another run made it, without calls.

    `attempts` are of every generation (their verdicts are ignored); `blobs` for every hash that an attempt names, whose
    bytes may be missing from the store.
    """

    row: TaskRow
    attempts: tuple[Attempt, ...]
    verdicts: tuple[StoredVerdict, ...] = ()
    scores: tuple[StoredScore, ...] = ()
    blobs: tuple[BlobRef, ...] = ()


@dataclass(frozen=True, slots=True)
class CallResult:
    """Everything that one answered call makes durable, in one transaction.

    Attributes:
        call_id: what `Journal.start_call` returned.
        outcome: how the try ended.
        final: the loop saw this answer; a replay takes it from here.
        usage: tokens and images, and the model that answered.
        cost_usd: settled price, None if unknown.
        latency_s: seconds from sending to answer.
        answer: text that the memo returns on replay; images by their hashes.
        raw: the provider's own answer as text, without image bytes.
        blobs: what `put_blob` returned for every hash that `attempt` names.
        attempt: the attempt's new row, inserted or replaced whole; its verdict is ignored.
        verdicts, scores: on this attempt.
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


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task and its state; `round` is the round of success, or the last one made."""

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
    """One try of one call as journalled; `outcome` is None while it is open."""

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
    """One process that wrote to the run; `ended_at` is None if it was killed or still runs."""

    id: int
    pid: int
    host: str
    started_at: str
    ended_at: str | None
    replayed: int
    peak_rss_mb: float | None
    detail: dict[str, JsonValue]


T = TypeVar("T")

_OPTIONS = orjson.OPT_NON_STR_KEYS
"""Keys keep their order: a replayed history must read exactly as it did the first time."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def clean_text(text: str) -> str:
    """Replace lone surrogates, which providers' JSON can contain and UTF-8 cannot, by "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def dumps(record: object) -> bytes:
    """Return a record, or a collection of records, as compact JSON."""
    return orjson.dumps(record, option=_OPTIONS)


def to_json(record: object) -> str:
    """Return a record as compact JSON, its texts cleaned. Numbers must be finite."""
    try:
        return dumps(record).decode()
    except orjson.JSONEncodeError:
        return dumps(_clean(record)).decode()


def from_json(kind: type[T], text: str) -> T:
    """Return the record of that class, every field checked. Raises ValueError."""
    record: T = _adapter(kind).validate_json(text)  # type: ignore[arg-type]  # a class is hashable
    return record


def dict_from_json(text: str) -> dict[str, JsonValue]:
    """Return a JSON object; raise ValueError for anything else."""
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
