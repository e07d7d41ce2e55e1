"""What can be wrong with a run folder; each error is one line that a person can act on."""

from __future__ import annotations

from plantain.records import InputError


class NotARun(InputError):
    """The folder has no journal, or a file of another kind under its name."""


class OtherVersion(InputError):
    """The journal was written by a version of plantain with other tables."""


class RunExists(InputError):
    """A new run was to be created where one already is."""


class RunLocked(InputError):
    """Another process writes to this run; its pid and host are in the message."""


class NetworkFolder(InputError):
    """A run was to be written on a network file system."""


class BadBlob(InputError):
    """A blob is missing from the store, or its bytes are not those that were stored."""


class DiskFull(InputError):
    """The disk under the run is full. What was recorded is intact; the run can be resumed."""
