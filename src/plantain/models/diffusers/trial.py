"""One edit with weights as they are on disk, timed: loading, a step of denoising, memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plantain.models.diffusers.jobs import Loading, Steering
from plantain.models.diffusers.remote import Edited, edit_with
from plantain.models.frames import FramedRequest

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline


@dataclass(frozen=True, slots=True)
class EditTrial:
    """Time and memory of one edit on a device.

    Attributes:
        edited: the edit, or why there is none.
        load_s: seconds from the files to a pipeline on its device; 0 if it could not be loaded.
        edit_s: seconds of the edit, from the original's bytes to a PNG of its size.
        step_s: seconds per step of denoising, without the first, which also warms up; None with fewer than two.
        steps: of denoising.
        memory_gb: peak, in gigabytes.
        memory_of: whose memory: "the GPU" or "the process".
    """

    edited: Edited
    load_s: float = 0.0
    edit_s: float = 0.0
    step_s: float | None = None
    steps: int = 0
    memory_gb: float = 0.0
    memory_of: str = "the process"


def run_trial(loading: Loading, steering: Steering, framed: FramedRequest, device: str) -> EditTrial:
    """Load weights onto a device and make one edit with them; meant for a process of its own."""
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()  # before the classes are imported, which prints remarks
    from plantain.models.diffusers.engine import Engine

    engine = Engine(device)
    start = time.perf_counter()
    fault = engine.load(loading)
    if fault is not None:
        return EditTrial(Edited(fault, {"method": loading.method, "device": device}))
    loaded = time.perf_counter()
    with _timed_steps(engine.pipeline(loading), device) as ends:
        edited = edit_with(engine, loading, steering, framed)
    end = time.perf_counter()
    step_s = (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else None
    memory_gb, whose = _peak_memory(device)
    return EditTrial(edited, loaded - start, end - loaded, step_s, len(ends), round(memory_gb, 3), whose)


@contextmanager
def _timed_steps(pipe: DiffusionPipeline, device: str) -> Iterator[list[float]]:
    """Record when each step of the scheduler ended, after the GPU has computed it."""
    ends: list[float] = []
    scheduler = pipe.scheduler
    step: Callable[..., Any] = scheduler.step

    def timed(*args: object, **more: object) -> object:
        stepped: object = step(*args, **more)
        if device.startswith("cuda"):
            import torch

            torch.cuda.synchronize(device)
        ends.append(time.perf_counter())
        return stepped

    scheduler.step = timed
    try:
        yield ends
    finally:
        del scheduler.step


def _peak_memory(device: str) -> tuple[float, str]:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.max_memory_allocated(device) / 1e9, "the GPU"
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (most if sys.platform == "darwin" else most * 1024) / 1e9, "the process"
