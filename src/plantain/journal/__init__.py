"""The journal of a run, its blobs, and reading both: the one place where what happened is kept."""

from __future__ import annotations

from .blobs import BlobStore
from .commit import WriterClosed
from .errors import BadBlob, DiskFull, NewerJournal, NotARun, OlderJournal, RunExists, RunLocked
from .filesystem import NetworkFolder
from .payload import clean_text
from .reader import JournalReader
from .rows import (
    BlobRef,
    CallRow,
    JsonValue,
    RecordedTask,
    RunHeader,
    SessionRow,
    Settlement,
    StartedCall,
    StoredScore,
    StoredVerdict,
    TaskRow,
)
from .verify import Integrity, verify
from .writer import Journal

__all__ = [
    "BadBlob",
    "BlobRef",
    "BlobStore",
    "CallRow",
    "DiskFull",
    "Integrity",
    "Journal",
    "JournalReader",
    "JsonValue",
    "NetworkFolder",
    "NewerJournal",
    "NotARun",
    "OlderJournal",
    "RecordedTask",
    "RunExists",
    "RunHeader",
    "RunLocked",
    "SessionRow",
    "Settlement",
    "StartedCall",
    "StoredScore",
    "StoredVerdict",
    "TaskRow",
    "WriterClosed",
    "clean_text",
    "verify",
]
