"""What runs on one device: loads pipelines, edits batches, and makes do with less memory when there is too little."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from diffusers import DiffusionPipeline
from safetensors import SafetensorError

from plantain.models.diffusers.canvases import Drawing, Original, Prepared, finish, prepare
from plantain.models.diffusers.concepts import NoConcept
from plantain.models.diffusers.jobs import Batch, Done, Loading
from plantain.models.diffusers.pipelines.runner import Drawn, Runner, runner_for
from plantain.pixels.decode import one_line
from plantain.records import InputError, Outcome, OutcomeKind

CANNOT_LOAD = (
    *(OSError, ValueError, ImportError, RuntimeError, TypeError, AttributeError, KeyError),
    SafetensorError,  # a file that was cut off, as transformers reads it
    AssertionError,  # torch without CUDA, asked for a GPU
)
CANNOT_DRAW = (ValueError, RuntimeError, TypeError, AttributeError, KeyError, IndexError, ArithmeticError)
"""What libraries raise for weights or pictures that they cannot handle; anything else ends the process, and is said."""

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class Engine:
    """Pipelines on one device.

    Args:
        device: of torch, e.g. "cpu", "cuda:0".
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self._runners: dict[Loading, Runner] = {}
        self._most: dict[Loading, int] = {}
        """What fitted into memory when more did not, by what was loaded."""

    def run(self, batch: Batch) -> list[Done]:
        """Edits a batch; what cannot be done comes back as outcomes, in the order of its jobs."""
        return [finish(drawing) for drawing in self.draw(prepare(batch))]

    def draw(self, prepared: Prepared) -> list[Drawing]:
        """The part of `run` that needs the device: pictures stay on their canvases, as arrays."""
        batch, prints = prepared.batch, prepared.originals
        fault = self.load(batch.loading)
        if fault is not None:
            return self._none(batch, fault)
        runner = self._runners[batch.loading]
        done: dict[int, Drawing] = {
            place: Drawing(None, outcome, {"method": runner.method.name})
            for place, outcome in prepared.faults.items()
        }
        rest = list(prints)
        notes: list[str] = []
        while rest:
            most = self._most.get(batch.loading, len(rest)) if runner.method.batches else 1
            alike = [place for place in rest if prints[place].frame.canvas == prints[rest[0]].frame.canvas]
            part = alike[:most]
            shortage = ""
            try:
                drawn = self._edit(runner, batch, [prints[place] for place in part], notes)
                done |= zip(part, drawn, strict=True)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                shortage = _first_line(error)
            if not shortage:
                rest = [place for place in rest if place not in part]
                continue
            self._forget_tensors()  # outside the except block: the error holds what was being computed
            if self._close_idle(batch.loading):
                continue
            if len(part) == 1:
                done |= dict.fromkeys(rest, self._too_large(batch, shortage))
                break
            fits = self._most[batch.loading] = (len(part) + 1) // 2
            notes.append(
                f"{self.device}: {len(part)} edits together did not fit into memory; from now on at most {fits}"
            )
        return [done[place] for place in range(len(batch.jobs))]

    def load(self, loading: Loading) -> Outcome | None:
        """Has a pipeline ready on the device; why it cannot be, or None."""
        try:
            self._runner(loading)
        except InputError as error:
            return Outcome(OutcomeKind.TRANSPORT, str(error), fatal=True)
        except CANNOT_LOAD as error:
            why = f"{loading.folder} could not be loaded onto {self.device}: {_first_line(error)}"
            return Outcome(OutcomeKind.TRANSPORT, why, fatal=True)
        return None

    def pipeline(self, loading: Loading) -> DiffusionPipeline:
        """A pipeline that was loaded."""
        return self._runners[loading].pipe

    def _runner(self, loading: Loading) -> Runner:
        """The pipeline, loaded once; those that were used least recently make room for it when they must."""
        if loading in self._runners:
            runner = self._runners.pop(loading)
        else:
            runner = self._load(loading)
        self._runners[loading] = runner
        return runner

    def _load(self, loading: Loading) -> Runner:
        while True:
            try:
                runner = runner_for(loading, self.device)
            except RuntimeError as error:
                if not (is_out_of_memory(error) and self._runners):
                    raise
            else:
                return runner
            self._close_idle(loading)

    def _close_idle(self, wanted: Loading) -> bool:
        """Gives up the pipeline that was used least recently, unless it is the wanted one; False when there is none."""
        idle = next((loading for loading in self._runners if loading != wanted), None)
        if idle is None:
            return False
        self._runners.pop(idle).close()
        self._forget_tensors()
        return True

    def _edit(
        self, runner: Runner, batch: Batch, prints: Sequence[Original], notes: list[str]
    ) -> list[Drawing]:
        jobs = [one.job for one in prints]
        try:
            regions = [one.region for one in prints if one.region is not None]
            drawn = runner.edit([one.canvas for one in prints], jobs, batch.steering, regions)
        except NoConcept as reason:
            drawn = [Drawn(None, Outcome(OutcomeKind.NOT_APPLICABLE, str(reason)))] * len(jobs)
        except CANNOT_DRAW as error:
            if is_out_of_memory(error) or is_device_lost(error):
                raise
            if len(prints) > 1:  # one that cannot be drawn spoils no other
                return [done for one in prints for done in self._edit(runner, batch, [one], notes)]
            drawn = [Drawn(None, Outcome(OutcomeKind.MALFORMED, _first_line(error)))]
        return [
            self._drawing(runner, batch, one, image, len(jobs), notes)
            for one, image in zip(prints, drawn, strict=True)
        ]

    def _drawing(
        self, runner: Runner, batch: Batch, original: Original, drawn: Drawn, together: int, notes: list[str]
    ) -> Drawing:
        job = original.job
        record: dict[str, object] = {
            "method": runner.method.name,
            "instruction": job.instruction,
            **runner.recorded(job),
            "seed": job.seed,
            "settings": batch.steering.settings,
            "geometry": original.frame.as_json(),
            **({"region": "given"} if runner.method.region else {}),
            "device": self.device,
            "precision": str(runner.precision).removeprefix("torch."),
            "together": together,
            **({"running": ran} if (ran := batch.loading.running.settings) else {}),
            **({"said": list(notes)} if notes else {}),
        }
        return Drawing(drawn.pixels, drawn.outcome, record, original.frame)

    def _too_large(self, batch: Batch, shortage: str) -> Drawing:
        why = (
            f"one edit does not fit into the memory of {self.device} ({shortage}); set providers.diffusers.offload "
            '= "model", a smaller side, or dtype = "bfloat16"'
        )
        record: dict[str, object] = {"method": batch.loading.method, "device": self.device}
        return Drawing(None, Outcome(OutcomeKind.TRANSPORT, why, fatal=True), record)

    def _none(self, batch: Batch, outcome: Outcome) -> list[Drawing]:
        record: dict[str, object] = {"method": batch.loading.method, "device": self.device}
        return [Drawing(None, outcome, record) for _ in batch.jobs]

    def _forget_tensors(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device or the machine had too little memory; torch says so in several ways."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY)


def is_device_lost(error: BaseException) -> bool:
    """Whether a GPU's context is broken: nothing works in this process any more, so it has to end."""
    return isinstance(error, RuntimeError) and "CUDA error" in str(error)


def _first_line(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}")
