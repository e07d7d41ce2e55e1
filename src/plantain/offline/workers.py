"""Run the offline models on the run's engine, or on processes that all runs of this process share."""

from __future__ import annotations

import threading

from plantain.engines.contract import WorkEngine, engine_in_place
from plantain.engines.local import LocalEngine

PRELOAD = ["plantain.offline.warm"]

_here: LocalEngine | None = None
_users = 0
_changing = threading.Lock()


def close_workers() -> None:
    """End the shared worker processes; the next computation starts new ones."""
    if _here is not None:
        _here.close()


def use_workers() -> None:
    """Register a user of the shared worker processes; each user must call `leave_workers` in the end."""
    global _users
    with _changing:
        _users += 1


def leave_workers() -> None:
    """Unregister a user of the shared worker processes; the last one ends them after their current work."""
    global _users
    with _changing:
        _users -= 1
        last = _users == 0
    if last:
        close_workers()


def workers() -> WorkEngine:
    """Return the engine of the present run, else the shared worker processes."""
    global _here
    if engine := engine_in_place.get():
        return engine
    with _changing:
        _here = _here or LocalEngine(PRELOAD)
    return _here
