"""Edits by open weights on a worker of the engine: weights are loaded with the first edit and kept while it lives."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from plantain.models.diffusers.devices import device_names
from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.frames import FramedRequest
from plantain.pixels.decode import BadImage
from plantain.records import Outcome, OutcomeKind
from plantain.roles import NormalForm

if TYPE_CHECKING:
    from plantain.models.diffusers.engine import Engine


@dataclass(frozen=True, slots=True)
class Edited:
    """An edit at the original's size: PNG bytes or an outcome, its record, and its normal form if requested."""

    result: bytes | Outcome
    record: dict[str, object]
    normal: NormalForm | None = None


def job_of(loading: Loading, steering: Steering, framed: FramedRequest) -> Job:
    """Convert a framed request to a job for a device. Raise BadImage if its original cannot be decoded."""
    region = framed.canvas_region()
    return Job(loading, steering, framed.canvas(), framed.instruction, framed.seed, framed.side, region)


def edit_here(
    loading: Loading, steering: Steering, framed: FramedRequest, device: str, normal: bool
) -> Edited:
    """Make one edit with the weights that this process keeps. End the process when its device is lost.

    Args:
        loading, steering, framed: pipeline, settings and request.
        device: as `providers.diffusers.device`; of several GPUs, those assigned to the worker.
        normal: True to return the normal form as well.
    """
    try:
        job = job_of(loading, steering, framed)
    except BadImage as error:
        return Edited(Outcome(OutcomeKind.MALFORMED, str(error)), {})
    try:
        done = _engine(device_here(device)).run(job)
    except RuntimeError:  # as in a device's own process: nothing can be trusted there any more
        traceback.print_exc()
        os._exit(1)
    result = done.outcome if done.pixels is None else framed.leave(done.pixels)
    known = NormalForm.of(result) if normal and isinstance(result, bytes) else None
    return Edited(result, done.record, known)


def device_here(named: str) -> str:
    """Return the first named device of this worker, whose first GPU is always "cuda:0"; see `device_names`."""
    first = device_names(named)[0]
    return "cuda:0" if first.startswith("cuda") else first


@cache
def _engine(device: str) -> Engine:
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()
    from plantain.models.diffusers.engine import Engine

    return Engine(device)
