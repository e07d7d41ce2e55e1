"""Edits by open weights on a worker of the engine: weights are loaded with the first edit and kept while it lives."""

from __future__ import annotations

import os
import traceback
from functools import cache
from typing import TYPE_CHECKING

from plantain.models.diffusers.devices import device_names
from plantain.models.diffusers.jobs import Batch, Done, Job, Loading, Steering
from plantain.models.remote import normal_form
from plantain.roles import NormalForm

if TYPE_CHECKING:
    from plantain.models.diffusers.engine import Engine


def edit_here(
    loading: Loading, steering: Steering, job: Job, device: str, normal: bool
) -> tuple[Done, NormalForm | None]:
    """Edits one picture with the weights that this process keeps. Ends the process when its device is lost.

    Args:
        loading, steering, job: the edit; one alone, so that its bytes hang on nothing else that waits.
        device: as `providers.diffusers.device` says it; of several GPUs, those that the worker was given.
        normal: bring what comes out into normal form too.
    """
    try:
        (done,) = _engine(device_here(device)).run(Batch(loading, steering, (job,)))
    except RuntimeError:  # as in a device's own process: nothing can be trusted there any more
        traceback.print_exc()
        os._exit(1)
    return done, normal_form(done.picture) if normal and done.picture is not None else None


def device_here(named: str) -> str:
    """The device of this worker: its first GPU, or what was named."""
    first = device_names(named)[0]
    return "cuda:0" if first.startswith("cuda") else first


@cache
def _engine(device: str) -> Engine:
    from plantain.models.diffusers.engine import Engine
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()
    return Engine(device)
