"""The engine of one device: loads pipelines, runs batches, and halves them when memory is short."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from diffusers import DiffusionPipeline
from safetensors import SafetensorError

from plantain.models.diffusers.jobs import Batch, Done, Job, Loading
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
    """An engine that loads pipelines onto one device and makes batches of edits.

    Args:
        device: name of the torch device, e.g. "cpu", "cuda:0".
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self._runners: dict[Loading, Runner] = {}
        self._most: dict[Loading, int] = {}
        """Edits that fitted into memory together when more did not."""

    def run(self, batch: Batch) -> list[Done]:
        """Make the edits of a batch, in parts if memory is short; return results in order, failures as outcomes."""
        fault = self.load(batch.loading)
        if fault is not None:
            return [self._failed(batch, fault) for _ in batch.jobs]
        runner = self._runners[batch.loading]
        rest, done, notes = list(batch.jobs), list[Done](), list[str]()
        while rest:
            most = self._most.get(batch.loading, len(rest)) if runner.method.batches else 1
            shortage = ""
            try:
                done += self._draw(runner, batch, rest[:most], notes)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                shortage = _first_line(error)
            if not shortage:
                rest = rest[most:]
                continue
            self._free_memory()  # outside the except block: the error refers to tensors of the computation
            if self._close_idle(batch.loading):
                continue
            together = len(rest[:most])
            if together == 1:
                why = (
                    f"one edit does not fit into the memory of {self.device} ({shortage}); set "
                    'providers.diffusers.offload = "model", a smaller side, or dtype = "bfloat16"'
                )
                fault = Outcome(OutcomeKind.TRANSPORT, why, fatal=True)
                return done + [self._failed(batch, fault) for _ in rest]
            fits = self._most[batch.loading] = (together + 1) // 2
            notes.append(
                f"{self.device}: {together} edits together did not fit into memory; from now on at most {fits}"
            )
        return done

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

    def _draw(self, runner: Runner, batch: Batch, jobs: Sequence[Job], notes: list[str]) -> list[Done]:
        try:
            drawn = runner.edit(jobs, batch.steering)
        except CANNOT_DRAW as error:
            if is_out_of_memory(error) or is_device_lost(error):
                raise
            if len(jobs) > 1:  # one that cannot be drawn must not spoil the others
                return [done for job in jobs for done in self._draw(runner, batch, [job], notes)]
            drawn = [Outcome(OutcomeKind.MALFORMED, _first_line(error))]
        records = [
            {
                "method": runner.method.name,
                "instruction": job.instruction,
                "seed": job.seed,
                "settings": batch.steering.settings,
                **({"region": "given"} if runner.method.region else {}),
                "device": self.device,
                "precision": str(runner.precision).removeprefix("torch."),
                "together": len(jobs),
                **({"running": ran} if (ran := batch.loading.running.settings) else {}),
                **({"said": list(notes)} if notes else {}),
            }
            for job in jobs
        ]
        return [
            Done(None, one, record) if isinstance(one, Outcome) else Done(one, OK, record)
            for one, record in zip(drawn, records, strict=True)
        ]

    def _failed(self, batch: Batch, outcome: Outcome) -> Done:
        return Done(None, outcome, {"method": batch.loading.method, "device": self.device})

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
