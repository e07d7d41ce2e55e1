"""The journal of a run and its blobs: writing, reading and checking both."""

from __future__ import annotations

from plantain.journal.blobs import BlobStore
from plantain.journal.reader import JournalReader
from plantain.journal.rows import (
    BadBlob,
    BlobRef,
    CallResult,
    CallRow,
    DiskFull,
    JsonValue,
    RecordedTask,
    RunHeader,
    RunLocked,
    SessionRow,
    StartedCall,
    StoredScore,
    StoredVerdict,
    TaskRow,
    clean_text,
)
from plantain.journal.verify import verify
from plantain.journal.writer import Journal

__all__ = [
    "BadBlob",
    "BlobRef",
    "BlobStore",
    "CallResult",
    "CallRow",
    "DiskFull",
    "Journal",
    "JournalReader",
    "JsonValue",
    "RecordedTask",
    "RunHeader",
    "RunLocked",
    "SessionRow",
    "StartedCall",
    "StoredScore",
    "StoredVerdict",
    "TaskRow",
    "clean_text",
    "verify",
]
