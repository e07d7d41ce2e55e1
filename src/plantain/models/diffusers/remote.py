"""Edits by open weights on a worker of the engine: weights are loaded with the first edit and kept while it lives."""

from __future__ import annotations

import os
import traceback
from functools import cache
from typing import TYPE_CHECKING

from plantain.models.diffusers.devices import device_names
from plantain.models.diffusers.jobs import Batch, Done, Job, Loading, Steering
from plantain.models.remote import normal_form
from plantain.pixels.arrays import Pixels
from plantain.roles import NormalForm

if TYPE_CHECKING:
    from plantain.models.diffusers.attention.attender import Attender, AttentionLook
    from plantain.models.diffusers.attention.watching import Watching
    from plantain.models.diffusers.engine import Engine
    from plantain.models.diffusers.plan import EditorPlan


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


def look_here(
    plan: EditorPlan,
    watching: Watching,
    pixels: Pixels,
    instruction: str,
    seed: int,
    concept: str,
    parameters: dict[str, float],
) -> AttentionLook:
    """Watches one edit; see `Attender.look`. Ends the process when its device is lost."""
    try:
        return _attender(plan, watching).look(pixels, instruction, seed, concept, parameters)
    except RuntimeError:
        traceback.print_exc()
        os._exit(1)


def device_here(named: str) -> str:
    """The device of this worker: its first GPU, or what was named."""
    first = device_names(named)[0]
    return "cuda:0" if first.startswith("cuda") else first


_watched: list[tuple[tuple[EditorPlan, Watching], Attender]] = []
"""The watched editor that this process has loaded, the last one asked for."""


def _attender(plan: EditorPlan, watching: Watching) -> Attender:
    from plantain.models.diffusers.attention.attender import Attender
    from plantain.models.diffusers.quiet import quiet_libraries

    if _watched and _watched[0][0] == (plan, watching):
        return _watched[0][1]
    for _, earlier in _watched:
        earlier.close()
    quiet_libraries()
    _watched[:] = [((plan, watching), Attender(plan, device_here(plan.options.device), watching))]
    return _watched[0][1]


@cache
def _engine(device: str) -> Engine:
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()
    from plantain.models.diffusers.engine import Engine

    return Engine(device)
