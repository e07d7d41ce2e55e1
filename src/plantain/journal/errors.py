"""What can be wrong with a run folder, each as one line that a person can act on."""

from __future__ import annotations

from plantain.records import InputError


class NotARun(InputError):
    """The folder holds no journal, or a file of another kind under its name."""


class RunExists(InputError):
    """A new run was to be created where one already is."""


class RunLocked(InputError):
    """Another process writes to this run.

    Attributes:
        pid, host: of that process; None and "" while it has not yet written them.
    """

    def __init__(self, message: str, pid: int | None, host: str) -> None:
        super().__init__(message)
        self.pid = pid
        self.host = host


class NewerJournal(InputError):
    """The journal was written by a later plantain; reading it by guess could misread it."""


class OlderJournal(InputError):
    """The journal is of a version from which there is no way forward."""


class BadBlob(InputError):
    """A blob is missing from the store, or its bytes are not those that were put there."""


class DiskFull(InputError):
    """The disk under the run has no room left. What was recorded is intact; the run can be resumed.

    Attributes:
        free_bytes: what is left on the disk.
        needed_bytes: an estimate of what the rest of the run needs.
    """

    def __init__(self, message: str, free_bytes: int, needed_bytes: int) -> None:
        super().__init__(message)
        self.free_bytes = free_bytes
        self.needed_bytes = needed_bytes
