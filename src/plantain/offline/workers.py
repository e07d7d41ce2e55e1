"""Run the offline models on the run's engine, or on processes that all runs of this process share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from plantain.engines.contract import engine_in_place
from plantain.engines.local import LocalEngine
from plantain.records import Outcome
from plantain.roles import answered_by

P = ParamSpec("P")
T = TypeVar("T")

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


async def compute(role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Outcome:
    """Run a module-level function on a worker of a role; return its result, or an outcome if the worker failed."""
    assert not kwargs, "a worker takes positional arguments"
    ran = await (engine_in_place.get() or _own_engine()).run(role, function, args)
    return answered_by(ran.on, ran.lost, ran.broken) or cast(T, ran.value)


def _own_engine() -> LocalEngine:
    global _here
    with _changing:
        _here = _here or LocalEngine(PRELOAD)
    return _here
