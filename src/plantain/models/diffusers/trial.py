"""One edit by weights as they lie on disk, timed: what it took to load them, to take a step, and in memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plantain.models.diffusers.jobs import Batch, Done, Job, Loading, Steering

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline


@dataclass(frozen=True, slots=True)
class EditTrial:
    """What one edit took on a device.

    Attributes:
        done: the edit, or why there is none.
        load_s: seconds from the files to a pipeline on its device; 0 when it could not be loaded.
        edit_s: seconds of the edit, from the picture's bytes to a PNG of its size.
        step_s: seconds of one step of denoising, the first left out, which also warms up; None with fewer than two.
        steps: how many steps of denoising the pipeline took.
        memory_gb: the most that was held at once, in gigabytes.
        memory_of: whose memory: "the GPU" or "the process".
    """

    done: Done
    load_s: float = 0.0
    edit_s: float = 0.0
    step_s: float | None = None
    steps: int = 0
    memory_gb: float = 0.0
    memory_of: str = "the process"


@dataclass(slots=True)
class _Clock:
    """When each step of denoising ended."""

    ends: list[float] = field(default_factory=list)

    @property
    def step_s(self) -> float | None:
        if len(self.ends) < 2:
            return None
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1)


def run_trial(loading: Loading, steering: Steering, job: Job, device: str) -> EditTrial:
    """Loads weights onto a device and makes one edit with them; meant for a process of its own."""
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()  # before the classes are imported, about which there are remarks
    from plantain.models.diffusers.engine import Engine

    engine = Engine(device)
    began = time.perf_counter()
    fault = engine.load(loading)
    if fault is not None:
        return EditTrial(Done(None, fault, {"method": loading.method, "device": device}))
    loaded = time.perf_counter()
    with _timed_steps(engine.pipeline(loading), device) as clock:
        (done,) = engine.run(Batch(loading, steering, (job,)))
    ended = time.perf_counter()
    memory_gb, whose = _most_memory(device)
    return EditTrial(
        done, loaded - began, ended - loaded, clock.step_s, len(clock.ends), round(memory_gb, 3), whose
    )


@contextmanager
def _timed_steps(pipe: DiffusionPipeline, device: str) -> Iterator[_Clock]:
    """Notes when the scheduler was asked for each next step; what the GPU still computes is waited for."""
    clock, scheduler = _Clock(), pipe.scheduler
    step: Callable[..., Any] = scheduler.step

    def timed(*args: object, **more: object) -> object:
        stepped: object = step(*args, **more)
        if device.startswith("cuda"):
            import torch

            torch.cuda.synchronize(device)
        clock.ends.append(time.perf_counter())
        return stepped

    scheduler.step = timed
    try:
        yield clock
    finally:
        del scheduler.step


def _most_memory(device: str) -> tuple[float, str]:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.max_memory_allocated(device) / 1e9, "the GPU"
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (most if sys.platform == "darwin" else most * 1024) / 1e9, "the process"
