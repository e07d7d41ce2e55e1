"""Errors of a run folder that callers distinguish; every other one is a plain InputError."""

from __future__ import annotations

from plantain.records import InputError


class RunLocked(InputError):
    """Another process writes to this run; its pid and host are in the message."""


class BadBlob(InputError):
    """A blob is missing from the store, or its bytes are not those that were stored."""


class DiskFull(InputError):
    """The disk under the run is full. What was recorded is intact; the run can be resumed."""
