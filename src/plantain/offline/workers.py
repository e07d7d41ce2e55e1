"""What the offline models compute goes to the run's engine, or to processes that all runs of this process share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from plantain.engines.contract import engine_in_place
from plantain.engines.local import LocalEngine
from plantain.records import Outcome
from plantain.roles.exchange import answered_by

P = ParamSpec("P")
T = TypeVar("T")

PRELOAD = ["plantain.offline.warm"]

_here = LocalEngine(PRELOAD)
_users = 0
_changing = threading.Lock()


def close_workers() -> None:
    """Ends this machine's processes; the next computation starts new ones."""
    _here.close()


def use_workers() -> None:
    """Counts one more user of the processes, in any thread; each calls `leave_workers` in the end."""
    global _users
    with _changing:
        _users += 1


def leave_workers() -> None:
    """The last user to leave ends the processes; blocks while they finish what they compute."""
    global _users
    with _changing:
        _users -= 1
        last = _users == 0
    if last:
        close_workers()


async def compute(role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Outcome:
    """Runs a module-level function on a worker of a role ("editor", "judge"); a lost worker becomes an outcome."""
    assert not kwargs, "a worker takes positional arguments"
    ran = await (engine_in_place.get() or _here).run(role, function, args)
    return answered_by(ran.on, ran.lost, ran.broken) or cast(T, ran.value)
