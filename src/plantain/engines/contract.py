"""An engine runs a module-level function on a worker, once, and reports where, or that the worker was lost.

`[engine]` selects where heavy work runs; nothing of it is frozen in a run.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Generic, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
    """Return the GPU models or the processor, and library versions: "NVIDIA H200; numpy 2.3.4, torch 2.13.0".

    Images computed on two kinds may differ. GPUs are named only if CUDA_VISIBLE_DEVICES names some; torch is not
    imported: the driver's files list all GPU models of the machine.
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
