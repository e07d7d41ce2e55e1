"""Attention grounding: repeat each edit of a run, and compare the editor's attention with the sample's region.

Scores go into the journal. The maps are for figures only: they are files in the run's folder `attention/` and can be
made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.concepts import concept_of
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.runfile import Arm, ArmKind, BenchRun, Output, output_seed
from plantain.files.opening import replace_file
from plantain.findings import sides_to_name
from plantain.journal import JsonValue, StoredScore
from plantain.metrics.grounding import Grounding, grounding, scaled
from plantain.models.diffusers.attention.watched import AttentionLook
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import compressed
from plantain.records import InputError, Score, unscored
from plantain.records.messages import command_line
from plantain.runs.progress import SILENT, ProgressObserver, RunSummary
from plantain.runs.setup import RunSetup
from plantain.runs.terms import Terms

if TYPE_CHECKING:  # it imports torch
    from plantain.models.diffusers.attention.watched import Attender

MEASURES = ("iou", "chance")
"""Measures of a map, each stored as `attention_NAME`; see `plantain.metrics.grounding.Grounding`."""

FOLDER = "attention"
MAP_SIDE = 128
"""Longest side of a stored map in pixels: attention is coarse."""

VERSION = 2
"""Raise it when the same map would be measured differently."""


def recordable_arms(run: BenchRun, wanted: Sequence[str]) -> list[Arm]:
    """Return the arms of open-weight editors, whose attention can be recorded: those in `wanted`, or all.

    Raises:
        InputError: no such arm, or its editor is not an open-weight one.
    """
    add = command_line("bench", "generate", run.benchmark_root, "--run", run.run, "--editor")
    usable = {
        label: arm
        for label, arm in run.arms.items()
        if arm.kind is ArmKind.EDITOR and arm.model.startswith("diffusers/")
    }
    for label in wanted:
        if label not in usable and label.startswith("diffusers/"):
            raise InputError(f"--editor {label}: this run has no outputs of it; add them: {add} {label}")
        if label not in usable:
            has = f"it has {', '.join(usable)}; " if usable else ""
            raise InputError(
                f"--editor {label}: attention can be recorded of open editors (diffusers/…) only; {has}"
                f"add one: {add} MODEL"
            )
    if not usable:
        raise InputError(
            f"{run.run}: no outputs of an open editor; add some: {add} diffusers/medebench-instruct-pix2pix"
        )
    return [usable[label] for label in wanted or usable]


async def measure_attention(
    run: Path,
    benchmark: Benchmark,
    arm_label: str,
    recorder: Attender,
    *,
    terms: Terms | None = None,
    observer: ProgressObserver = SILENT,
) -> RunSummary:
    """Measure the attention of an arm's scored outputs; measured outputs are skipped.

    Args:
        run: the run's folder.
        benchmark: the benchmark that the run was generated from.
        arm_label: the arm.
        recorder: the arm's editor.
        terms: limits under which the run is opened; None for the defaults.
        observer: receives progress.

    Raises:
        InputError: another benchmark, no outputs yet, or another process writes to the run.
    """
    async with RunSetup(terms or Terms(())).open(run, observer=observer) as opened:
        recorded = BenchRun(opened.journal.reader)
        if recorded.header.digest != benchmark.digest:
            raise InputError(f"{benchmark.root}: is not the benchmark that {run} was generated from")
        arm = recorded.arms[arm_label]
        made = [output for output in recorded.scored(arm_label) if output.attempt is not None]
        if not made:
            raise InputError(f"{run}: {arm_label} has no outputs yet; rerun the bench generate that added it")
        observer.stage_started(arm_label, len(made))
        repeated = _RepeatedEdits(recorded, benchmark, arm, recorder)

        async def measure(output: Output) -> None:
            if repeated.is_measured(output):
                opened.summary.kept += 1
            else:
                await opened.journal.add_scores(await repeated.scores(output))
                opened.summary.measured += 1
            observer.advanced(1)

        await opened.walk(made, measure, at_once=max(1, 2 * opened.terms.room))
    return opened.summary


@dataclass(frozen=True, slots=True)
class _RepeatedEdits:
    """The edits of one arm, each repeated and measured."""

    run: BenchRun
    benchmark: Benchmark
    arm: Arm
    recorder: Attender

    def is_measured(self, output: Output) -> bool:
        """Return True if it was measured for this concept by this version, and its map, if any, still exists."""
        found = self.run.scores(output).get(f"attention_{MEASURES[0]}")
        concept, _ = concept_of(self.benchmark.sample(output.sample_id))  # can change at any time
        if found is None or (found.detail["version"], found.detail["concept"]) != (VERSION, concept):
            return False
        path = map_path(self.run.run, self.arm, output.sample_id, output.k)
        return not found.score.scored or path.is_file()

    async def scores(self, output: Output) -> list[StoredScore]:
        """Return the scores of an output; its map has been written by then."""
        sample = self.benchmark.sample(output.sample_id)
        if sample.roi is None:
            return self._rows(output, unscored("the sample has no region"), {})
        concept, why_none = concept_of(sample)
        if not concept:
            return self._rows(output, unscored(f"no concept: {why_none}"), {})
        instruction = self.arm.instruction(sample)
        sides = sides_to_name(instruction, sample.image) if self.recorder.names_sides else ""
        point = self.arm.grid[output.k]
        seen = await self.recorder.look(
            await asyncio.to_thread(self.benchmark.previous, sample),
            f"{instruction} {sides}".rstrip(),  # the words that the editor received
            output_seed(self.run.reader.header.seed, sample.id, point.seed),
            concept,
            dict(point.parameters),
        )
        return await asyncio.to_thread(self._measured, sample, output, seen)

    def _measured(self, sample: Sample, output: Output, seen: AttentionLook) -> list[StoredScore]:
        detail: dict[str, JsonValue] = {
            "tokens": list(seen.tokens),
            "differs": self._difference(output, seen.edited),
            "what": seen.what,
        }
        if seen.attention is None:
            return self._rows(output, unscored(seen.reason), detail)
        attention = seen.on_image()
        found = grounding(attention, self.benchmark.roi(sample))
        detail |= {"threshold": found.threshold, "selected": found.selected}
        _write_map(map_path(self.run.run, self.arm, sample.id, output.k), attention)
        return self._rows(output, found, detail)

    def _rows(
        self, output: Output, found: Grounding | Score, detail: dict[str, JsonValue]
    ) -> list[StoredScore]:
        concept, _ = concept_of(self.benchmark.sample(output.sample_id))
        detail = {"version": VERSION, "concept": concept, **detail}
        return [
            output.score(
                f"attention_{name}", found if isinstance(found, Score) else getattr(found, name), detail
            )
            for name in MEASURES
        ]

    def _difference(self, output: Output, edited: Pixels | None) -> int | None:
        """Return the largest difference of repeated edit and stored output in grey levels; None without either."""
        if edited is None or output.edited is None:
            return None
        stored = decode(self.run.read(output))
        if stored.shape != edited.shape:
            return 255
        return int(np.abs(stored.astype(np.int16) - edited.astype(np.int16)).max())


def map_path(run: Path, arm: Arm, sample_id: str, k: int) -> Path:
    """Return the path of an output's attention map: a small 16-bit grey PNG, scaled to the map's range."""
    return run / FOLDER / arm.folder / f"{sample_id}_{k}.png"


def read_map(path: Path) -> npt.NDArray[np.float32]:
    """Read a stored attention map as float32 (h, w) in [0, 1]. Raise InputError if the file is damaged."""
    stored = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_UNCHANGED)
    if stored is None:
        raise InputError(
            f"{path}: is damaged; delete it, then {command_line('bench', 'attention', path.parents[2])}"
        )
    return np.asarray(stored, np.float32) / 65535.0


def _write_map(path: Path, attention: npt.NDArray[np.float32]) -> None:
    values = scaled(attention)
    if values is None:
        return
    longest = max(values.shape)
    if longest > MAP_SIDE:
        size = (round(values.shape[1] * MAP_SIDE / longest), round(values.shape[0] * MAP_SIDE / longest))
        values = cv2.resize(values, size, interpolation=cv2.INTER_AREA)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, compressed(".png", np.round(values * 65535).astype(np.uint16)))
