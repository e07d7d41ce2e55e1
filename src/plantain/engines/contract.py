"""An engine runs a module-level function on a worker, once, and reports where, or that the worker was lost.

Work that leaves no trace may be repeated: a lost worker then costs only the time to ask another one. `[engine]` selects
where heavy work runs; nothing of it is frozen in a run.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from plantain.records import InputError

if TYPE_CHECKING:
    from plantain.engines.cluster import RayEngine


P = ParamSpec("P")
T = TypeVar("T")

LIBRARIES = ("numpy", "opencv-python-headless", "torch", "diffusers")
"""Packages whose version can change a pixel."""


@dataclass(frozen=True, slots=True)
class Ran(Generic[T]):
    """The result of a piece of work on a worker.

    Attributes:
        value: the function's result; None if `lost` or `broken`.
        on: the kind of worker: processor or device, and versions of the computing libraries; "" if unknown.
        lost: why the worker failed; its work may have been done. "" if it answered.
        broken: why no worker can be started; "" otherwise.
    """

    value: T | None
    on: str = ""
    lost: str = ""
    broken: str = ""


@cache
def machine_kind() -> str:
    """Return this process's GPUs, else its processor, and versions: "NVIDIA H200; numpy 2.3.4, torch 2.13.0".

    Images computed on two kinds may differ. Torch is not imported: GPUs are read from the driver's files, and only if
    this process may use some.
    """
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    cards: set[str] = set()
    if os.environ.get("CUDA_VISIBLE_DEVICES", "none") not in ("", "-1", "none", "NoDevFiles"):
        for card in Path("/proc/driver/nvidia/gpus").glob("*/information"):
            cards |= _named("Model", card)
    processor = next(
        iter(_named("model name", Path("/proc/cpuinfo"))), platform.processor() or platform.machine()
    )
    return f"{', '.join(sorted(cards)) or processor}; {', '.join(versions)}"


def _named(field: str, file: Path) -> set[str]:
    """Return the values of a field in a file of lines `field: value`."""
    lines = file.read_text(errors="replace").splitlines() if file.is_file() else []
    return {line.partition(":")[2].strip() for line in lines if line.startswith(field)}


class WorkEngine(Protocol):
    """The interface of engines, which run functions outside the process that owns the run."""

    async def run(self, role: str, function: Callable[..., T], arguments: Sequence[object]) -> Ran[T]:
        """Run a module-level function once on a worker of a role ("editor", "judge") and return its result.

        Wait for a free worker. Exceptions of the function are raised here. Lost work is not repeated.
        """
        ...


engine_in_place: ContextVar[WorkEngine | None] = ContextVar("engine_in_place", default=None)
"""The engine of the present run, with workers elsewhere, where their results should also be encoded; None for this
machine's processes.
"""

LOST_IN_A_ROW = 10
"""Workers that may be lost with one piece of work, as many as a call may lose."""


class NoWorkers(InputError):
    """Raised if no worker can do the work, by a fault of the engine and not of the input."""


async def repeated(
    engine: WorkEngine, role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a module-level function on a worker of a role, again if the worker failed; return its result.

    Raises:
        NoWorkers: no worker can be started, or 10 workers in a row were lost with this piece of work.
    """
    assert not kwargs, "a worker takes positional arguments"
    lost = ""
    for _ in range(LOST_IN_A_ROW):
        ran = await engine.run(role, function, args)
        if ran.broken:
            raise NoWorkers(ran.broken)
        if not ran.lost:
            return cast(T, ran.value)
        lost = ran.lost
    raise NoWorkers(
        f"{LOST_IN_A_ROW} workers in a row were lost with the same piece of work; the last: {lost}"
    )


class EngineThread:
    """An engine for the threads of a program without an event loop: its own loop runs in a thread.

    Attributes:
        room: intended number of workers.
    """

    def __init__(self, engine: WorkEngine, loop: asyncio.AbstractEventLoop, room: int) -> None:
        self._engine, self._loop, self.room = engine, loop, room

    def run(self, role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Block until a worker has run the function; return its result. Raise its exceptions, or NoWorkers."""
        asked = repeated(self._engine, role, function, *args, **kwargs)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()


@contextmanager
def engine_thread(engine: RayEngine) -> Iterator[EngineThread]:
    """Open an engine for the block. Raise InputError if the cluster cannot be reached or Ray is not installed."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="engine", daemon=True)
    thread.start()
    try:
        engine.open()
        yield EngineThread(engine, loop, engine.room)
    finally:
        asyncio.run_coroutine_threadsafe(engine.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


Amount = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"]


class WorkersSection(BaseModel):
    """The settings for the workers of a role.

    Attributes:
        cpus: processor cores per worker.
        gpus: GPUs per worker.
        memory_gb: main memory per worker in GB.
        resources: custom resources of the cluster per worker, by name.
        workers: number of workers; "auto" for as many as fit, unset for the number of all roles.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cpus: Amount = 1.0
    gpus: Amount = 0.0
    memory_gb: Amount = 0.0
    resources: Mapping[str, Amount] = Field(default_factory=dict)
    workers: Number | None = None

    @model_validator(mode="after")
    def _takes_something(self) -> Self:
        if not self.amounts:
            raise ValueError("a worker that takes nothing fits without end; say cpus, e.g. 0.5")
        return self

    @property
    def amounts(self) -> dict[str, float]:
        """A worker's resources above zero by Ray's names: "CPU", "GPU", "memory" in bytes, and others."""
        named = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory_gb * 2**30, **self.resources}
        return {name: amount for name, amount in named.items() if amount}

    def __str__(self) -> str:
        """Return the resources for messages, e.g. "1 CPU and 1 GPU"."""
        parts = [f"{self.memory_gb:g} GB of memory"] if self.memory_gb else []
        parts += [f"{amount:g} {name}" for name, amount in self.amounts.items() if name != "memory"]
        return " and ".join(sorted(parts))


class EngineSection(BaseModel):
    """The settings in `[engine]`. Roles with the same needs share their workers.

    Attributes:
        kind: "local" for processes of this machine, "ray" for workers of a Ray cluster.
        address: address of the cluster: "auto" for this machine's cluster, or if it has none a new one for the run;
            "host:port"; or "local" for a new one in any case.
        workers: number of workers for every role that states none.
        editor, judge: the workers of a role.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["local", "ray"] = "local"
    address: str = Field(default="auto", min_length=1)
    workers: Number = "auto"
    editor: WorkersSection = WorkersSection()
    judge: WorkersSection = WorkersSection()

    def of(self, role: str) -> WorkersSection:
        """Return the section of a role (the default one if it has none), with the number of workers filled in."""
        section: WorkersSection = getattr(self, role) if role in ROLES else WorkersSection()
        return section if section.workers else section.model_copy(update={"workers": self.workers})


ROLES = ("editor", "judge")
"""The roles that have a section of their own."""

HERE = EngineSection()
"""Processes of this machine."""
