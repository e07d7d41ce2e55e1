"""The engine of one device: loads pipelines and makes edits; when memory is short, it closes idle pipelines."""

from __future__ import annotations

import torch
from diffusers import DiffusionPipeline
from safetensors import SafetensorError

from plantain.models.diffusers.jobs import Done, Job, Loading
from plantain.models.diffusers.pipelines.runner import Runner, runner_for
from plantain.pixels.decode import one_line
from plantain.records import OK, InputError, Outcome, OutcomeKind

CANNOT_LOAD = (
    *(OSError, ValueError, ImportError, RuntimeError, TypeError, AttributeError, KeyError),
    SafetensorError,  # a truncated file, as transformers reads it
    AssertionError,  # torch without CUDA on a GPU device
)
CANNOT_DRAW = (ValueError, RuntimeError, TypeError, AttributeError, KeyError, IndexError, ArithmeticError)
"""Errors of libraries for weights or images that they cannot handle; any other ends the process."""

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class Engine:
    """An engine that loads pipelines onto one device and makes edits, one at a time.

    Args:
        device: name of the torch device, e.g. "cpu", "cuda:0".
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self._runners: dict[Loading, Runner] = {}

    def run(self, job: Job) -> Done:
        """Make an edit; return its result, or the outcome of a failure."""
        fault = self.load(job.loading)
        while fault is None:
            try:
                return self._draw(self._runners[job.loading], job)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                shortage = _first_line(error)
            self._free_memory()  # outside the except block: the error refers to tensors of the computation
            if not self._close_idle(job.loading):
                why = (
                    f"one edit does not fit into the memory of {self.device} ({shortage}); set "
                    'providers.diffusers.offload = "model", a smaller side, or dtype = "bfloat16"'
                )
                fault = Outcome(OutcomeKind.TRANSPORT, why, fatal=True)
        return Done(None, fault, {"method": job.loading.method, "device": self.device})

    def load(self, loading: Loading) -> Outcome | None:
        """Load a pipeline onto the device if it is not there; return None, or a fatal outcome if that fails."""
        try:
            known = loading in self._runners
            self._runners[loading] = self._runners.pop(loading) if known else self._load(loading)
        except InputError as error:
            return Outcome(OutcomeKind.TRANSPORT, str(error), fatal=True)
        except CANNOT_LOAD as error:
            why = f"{loading.folder} could not be loaded onto {self.device}: {_first_line(error)}"
            return Outcome(OutcomeKind.TRANSPORT, why, fatal=True)
        return None

    def pipeline(self, loading: Loading) -> DiffusionPipeline:
        """Return a pipeline that `load` has loaded."""
        return self._runners[loading].pipe

    def _load(self, loading: Loading) -> Runner:
        while True:
            try:
                return runner_for(loading, self.device)
            except RuntimeError as error:
                if not (is_out_of_memory(error) and self._runners):
                    raise
            self._close_idle(loading)

    def _close_idle(self, wanted: Loading) -> bool:
        """Close the least recently used pipeline, unless it is the wanted one; return False if there is none."""
        idle = next((loading for loading in self._runners if loading != wanted), None)
        if idle is None:
            return False
        self._runners.pop(idle).close()
        self._free_memory()
        return True

    def _draw(self, runner: Runner, job: Job) -> Done:
        try:
            drawn = runner.edit(job)
        except CANNOT_DRAW as error:
            if is_out_of_memory(error) or is_device_lost(error):
                raise
            drawn = Outcome(OutcomeKind.MALFORMED, _first_line(error))
        record = {
            "method": runner.method.name,
            "instruction": job.instruction,
            "seed": job.seed,
            "settings": job.steering.settings,
            **({"region": "given"} if runner.method.region else {}),
            "device": self.device,
            "precision": str(runner.precision).removeprefix("torch."),
            **({"running": ran} if (ran := job.loading.running) else {}),
        }
        return Done(None, drawn, record) if isinstance(drawn, Outcome) else Done(drawn, OK, record)

    def _free_memory(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if an error means that a device or the machine had too little memory."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY)


def is_device_lost(error: BaseException) -> bool:
    """Return True if an error means that a GPU's context is broken, so that the process has to end."""
    return isinstance(error, RuntimeError) and "CUDA error" in str(error)


def _first_line(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}")
