"""An engine runs a module-level function on a worker, once, and reports where, or that the worker was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ran(Generic[T]):
    """The result of a piece of work.

    Attributes:
        value: returned by the function; None if `lost` or `broken`.
        on: the kind of worker: processor or device, and the versions of the libraries that compute; "" when unknown.
        lost: why the worker is gone; its work may have been done. "" if it answered.
        broken: why there will be no worker at all; "" otherwise.
    """

    value: T | None
    on: str = ""
    lost: str = ""
    broken: str = ""


@dataclass(frozen=True, slots=True)
class EngineState:
    """The state of an engine.

    Attributes:
        kind: "local" or "ray".
        workers: that are ready; `busy` of them compute.
        queued: pieces of work that wait for one.
        done: pieces of work that were answered so far.
        lost: workers that were lost so far.
        no_room_for: resources of a worker that the cluster cannot place while work waits; "" for none.
    """

    kind: str
    workers: int
    busy: int
    queued: int
    done: int
    lost: int
    no_room_for: str = ""


class WorkEngine(Protocol):
    """Runs functions elsewhere than in the process that owns the run."""

    @property
    def remote(self) -> bool:
        """Return True if workers are on other machines, where their results should also be encoded."""
        ...

    @property
    def state(self) -> EngineState: ...

    async def run(self, role: str, function: Callable[..., T], arguments: Sequence[object]) -> Ran[T]:
        """Run a function of a module once, on a worker of a role ("editor", "judge").

        Wait for a free worker. Exceptions of the function are raised here. Lost work is not repeated.
        """
        ...


engine_in_place: ContextVar[WorkEngine | None] = ContextVar("engine_in_place", default=None)
"""The engine of the present run; without one work runs in this machine's processes."""


def remote_engine() -> WorkEngine | None:
    """Return the engine of the present run, where its workers are elsewhere."""
    engine = engine_in_place.get()
    return engine if engine is not None and engine.remote else None
