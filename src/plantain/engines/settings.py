"""`[engine]`: where heavy work runs. Nothing of it is frozen in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from plantain.records import InputError
from plantain.records.messages import suggest

Amount = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"]


class WorkersSection(BaseModel):
    """The workers of a role.

    Attributes:
        cpus: processor cores that each takes.
        gpus: GPUs that each takes.
        memory_gb: GB of main memory that each takes.
        resources: resources of the cluster's own that each takes, by name.
        workers: their number; "auto" for as many as fit, unset for the number of all roles.
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
        """Return a worker's resources, by Ray's names."""
        named = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory_gb * 2**30, **self.resources}
        return {name: amount for name, amount in named.items() if amount}

    def __str__(self) -> str:
        """For messages, e.g. "1 CPU and 1 GPU"."""
        parts = [f"{self.memory_gb:g} GB of memory"] if self.memory_gb else []
        parts += [f"{amount:g} {name}" for name, amount in self.amounts.items() if name != "memory"]
        return " and ".join(sorted(parts))


class EngineSection(BaseModel):
    """`[engine]`. Roles with the same needs share their workers.

    Attributes:
        kind: "local" for processes of this machine, "ray" for workers of a Ray cluster.
        address: of the cluster: "auto" for the one that this machine belongs to, else one that starts and ends with the
            run; "host:port"; or "local" for the latter in any case.
        workers: number for every role that states none.
        editor, judge, metrics: the workers of a role.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["local", "ray"] = "local"
    address: str = Field(default="auto", min_length=1)
    workers: Number = "auto"
    editor: WorkersSection = WorkersSection()
    judge: WorkersSection = WorkersSection()
    metrics: WorkersSection = WorkersSection()

    def of(self, role: str) -> WorkersSection:
        """Return the workers of a role, with their number."""
        section: WorkersSection = getattr(self, role) if role in ROLES else WorkersSection()
        return section if section.workers else section.model_copy(update={"workers": self.workers})


ROLES = ("editor", "judge", "metrics")
"""The roles that have a section of their own."""

HERE = EngineSection()
"""Processes of this machine."""


def engine_named(section: EngineSection, kind: str) -> EngineSection:
    """Return the section with the kind that `--engine` names, as it is for "". Raise InputError for no such engine."""
    if kind not in ("", "local", "ray"):
        raise InputError(f"--engine {kind}: no such engine; {suggest(kind, ('local', 'ray'))}")
    return section.model_copy(update={"kind": kind}) if kind else section
