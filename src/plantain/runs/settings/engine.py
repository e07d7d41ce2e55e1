"""What a recipe or settings file may say of `[engine]`: where heavy work runs. Free to change when a run is resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from plantain.engines.cluster import Need, Staff
from plantain.records import InputError
from plantain.records.suggestions import suggest

Amount = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"]


class StaffSection(BaseModel):
    """The workers of a role.

    Each takes `cpus` processor cores. Each takes `gpus` GPUs. Each takes `memory_gb` GB of main memory. Each takes
    these `resources` of the cluster's own, by name. There are `workers` of them ("auto": as many as fit).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cpus: Amount = 1.0
    gpus: Amount = 0.0
    memory_gb: Amount = 0.0
    resources: Mapping[str, Amount] = Field(default_factory=dict)
    workers: Number | None = None

    @model_validator(mode="after")
    def _takes_something(self) -> Self:
        if not (self.cpus or self.gpus or self.memory_gb or any(self.resources.values())):
            raise ValueError(
                "a worker that takes nothing of the cluster has no number that fits; say cpus, e.g. 0.5"
            )
        return self


class EngineSection(BaseModel):
    """`[engine]`. `kind` "local" is processes of this machine; "ray" is workers of the Ray cluster at `address`.

    `address` is Ray's own: "auto" for the one that this machine belongs to, "host:port", or "local" for one that begins
    and ends with the run. `workers` counts for every role that says nothing of its own; roles with the same needs share
    theirs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["local", "ray"] = "local"
    address: Annotated[str, Field(min_length=1)] = "auto"
    workers: Number = "auto"
    editor: StaffSection = StaffSection()
    judge: StaffSection = StaffSection()
    metrics: StaffSection = StaffSection()

    def staff(self) -> dict[str, Staff]:
        """The workers by role, as the engine takes them."""
        return {
            "": self._staff(StaffSection()),
            "editor": self._staff(self.editor),
            "judge": self._staff(self.judge),
            "metrics": self._staff(self.metrics),
        }

    def _staff(self, section: StaffSection) -> Staff:
        need = Need(section.cpus, section.gpus, section.memory_gb, tuple(sorted(section.resources.items())))
        number = self.workers if section.workers is None else section.workers
        return Staff(need, None if number == "auto" else number)


HERE = EngineSection()
"""Processes of this machine."""

KINDS = ("local", "ray")


def engine_named(section: EngineSection, kind: str) -> EngineSection:
    """The section with another kind of engine, as `--engine` names it; the same for "".

    Raises:
        InputError: no such engine.
    """
    if not kind:
        return section
    if kind not in KINDS:
        raise InputError(f"--engine {kind}: no such engine; {suggest(kind, KINDS)}")
    return section.model_copy(update={"kind": kind})
