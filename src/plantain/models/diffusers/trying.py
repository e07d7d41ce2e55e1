"""`plantain models try`: one edit with weights as they are on disk, timed: loading, a step of denoising, memory."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plantain.files.installed import require_extra
from plantain.models.diffusers.devices import device_names
from plantain.models.diffusers.facts import facts_of
from plantain.models.diffusers.jobs import Loading, Steering
from plantain.models.diffusers.plan import EditorPlan, plan_editor
from plantain.models.diffusers.provider import Settings
from plantain.models.diffusers.quiet import OFFLINE, quiet_libraries
from plantain.models.diffusers.remote import Edited, edit_with
from plantain.models.diffusers.weights import NotReady, size_gb
from plantain.models.frames import FramedRequest
from plantain.models.registry import Preset, presets, provider_names
from plantain.pixels.decode import declared_size
from plantain.records import InputError, Outcome, OutcomeKind
from plantain.sources.samples import fundus_file

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline

EXTRA = ("torch", "diffusers")
INSTRUCTION, CONCEPT = "Remove the optic disc", "optic disc"
SEED = 0


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


@dataclass(frozen=True, slots=True)
class Tried:
    """An editor, and how one edit by it went.

    Attributes:
        name: "diffusers/NAME".
        weights: hub ids or folders, base first.
        licence, disk_gb, needs: if known; `needs` is memory in words.
        missing: why nothing was tried; "" where something was.
        plan: of the trial; None if something is missing.
        device: where it ran.
        trial: how it went; None where something is missing.
        canvas: width and height at which the model worked.
        usual_steps: steps of an edit with the preset's or provider's settings; None where these leave it open.
    """

    name: str
    weights: tuple[str, ...]
    licence: str
    disk_gb: float
    needs: str
    missing: str = ""
    plan: EditorPlan | None = None
    device: str = ""
    trial: EditTrial | None = None
    canvas: tuple[int, int] = (0, 0)
    usual_steps: int | None = None

    @property
    def usual_s(self) -> float | None:
        """Return the estimated seconds of an edit with the usual steps, from the trial's; None if unknown."""
        trial = self.trial
        if trial is None or trial.step_s is None or self.usual_steps is None:
            return None
        return trial.edit_s + (self.usual_steps - trial.steps) * trial.step_s


def open_editor_named(name: str) -> str:
    """Return an editor's full name, "diffusers/NAME", from a name that may omit the provider.

    Raises:
        InputError: it is another provider's model, which has no weights here.
    """
    provider = name.partition("/")[0]
    if provider == "diffusers" and "/" in name:
        return name
    if provider in provider_names() and "/" in name:
        raise InputError(
            f"{name}: only open weights are tried, diffusers/NAME; `plantain models --probe` asks a hosted model"
        )
    return f"diffusers/{name}"


def try_editor(editor: str, options: Settings, steps: int) -> Tried:
    """Load an editor from disk, edit one photograph of scikit-image, and return how that went.

    Args:
        editor: its name, e.g. "flux2-klein-4b" or "diffusers/NAME@FOLDER".
        options: of the provider; of several devices the first is tried.
        steps: of the edit, in place of the preset's; of Imagic's learning too.

    Raises:
        InputError: no such editor, or a setting that it does not follow.
    """
    name = open_editor_named(editor)
    require_extra(name, *EXTRA)
    try:
        plan = plan_editor(name, options)
    except NotReady as error:
        facts = facts_of(_preset_of(name), options.cache_dir)
        return Tried(name, facts.weights, facts.licence, facts.disk_gb, facts.memory, str(error))
    weights = (plan.weights, *(found for found, _ in plan.loras))
    known = facts_of(replace(plan.preset, weights=plan.weights.name, method=plan.method.name))
    device = device_names(options.device)[0]
    learning = {"text_steps", "model_steps"} & plan.method.takes
    steering = replace(plan.steering, steps=steps, **dict.fromkeys(learning, steps))
    original, side = fundus_file().read_bytes(), plan.options.side
    framed = FramedRequest(
        original,
        plan.method.frame.frame(*declared_size(original), side),
        plan.preset.words(INSTRUCTION),
        SEED,
        concept=CONCEPT,
        removes=True,
        side=side,
    )
    os.environ.update(OFFLINE)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        try:
            trial = process.submit(run_trial, plan.loading, steering, framed, device).result()
        except BrokenProcessPool:
            why = f"the process of {device} was killed, or crashed, while it ran (out of memory?)"
            trial = EditTrial(Edited(Outcome(OutcomeKind.TRANSPORT, why), {}))
    return Tried(
        name,
        tuple(each.name for each in weights),
        plan.terms.licence,
        sum(map(size_gb, weights)),
        known.memory,
        plan=plan,
        device=device,
        trial=trial,
        canvas=framed.frame.canvas,
        usual_steps=plan.steering.steps,
    )


def check_new_folder(folder: Path) -> None:
    """Raise InputError if a new folder exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is there already and is not empty; name a new folder")


def _preset_of(name: str) -> Preset:
    """The preset that a name rests on, or what stands for plain weights."""
    source = name.partition("/")[2]
    row = presets().get(f"diffusers/{source.partition('@')[0]}")
    if row is not None:
        return row
    usual = next((row for row in presets().values() if row.weights == source and row.usual), None)
    return usual or Preset(name, weights=source)


def run_trial(loading: Loading, steering: Steering, framed: FramedRequest, device: str) -> EditTrial:
    """Load weights onto a device, make one edit, and return its times and memory; meant for its own process."""
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
