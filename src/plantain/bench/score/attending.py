"""Attention grounding of a run's outputs: each edit is repeated and its attention compared with its region.

The maps are not part of the journal, whose scores they gave: they lie in the run's folder `attention/`, for pictures,
and can be made again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arms import Arm, ArmKind, output_seed
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.files.writing import replace_file
from plantain.findings import sides_to_name
from plantain.journal import Journal, JsonValue, StoredScore
from plantain.metrics.grounding import ALPHA, Grounding, grounding, scaled
from plantain.models.frames import Frame
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError, Score, unscored
from plantain.runs.door import Door
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary

MEASURES = ("iou", "chance", "mass", "pointing", "auroc")
"""Measures of a map, each stored as `attention_NAME`."""

FOLDER = "attention"
MAP_SIDE = 128
"""Longest side of a stored map in pixels: attention is coarse."""

VERSION = 1
"""Of what is stored; raised when the same map would be measured otherwise."""


class WatchedEdit(Protocol):
    """What a watched edit gives; see `plantain.models.diffusers.attention.attender.AttentionLook`."""

    @property
    def attention(self) -> npt.NDArray[np.float32] | None: ...
    @property
    def frame(self) -> Frame: ...
    @property
    def tokens(self) -> tuple[int, ...]: ...
    @property
    def edited(self) -> Pixels | None: ...
    @property
    def what(self) -> str: ...
    @property
    def reason(self) -> str: ...
    def on_image(self) -> npt.NDArray[np.float32]: ...


class Watched(Protocol):
    """An editor whose attention is recorded; see `plantain.models.diffusers.attention.watched.WatchedEditor`."""

    @property
    def names_sides(self) -> bool: ...

    async def look(
        self, pixels: Pixels, instruction: str, seed: int, concept: str, parameters: dict[str, float]
    ) -> WatchedEdit:
        """Repeats an edit; here one after the other, on the run's engine as many at once as there are workers."""
        ...


@dataclass(frozen=True, slots=True)
class Measuring:
    """How a map is measured.

    Attributes:
        alpha: factor on Otsu's threshold.
        size: "image" measures at the image's own size, "latent" at the map's, the region being averaged down.
        outputs: "scored" for those that the arm's rule names, "all" for every output of the grid.
        watching: how it was recorded, as JSON, for the record.
    """

    alpha: float = ALPHA
    size: str = "image"
    outputs: str = "scored"
    watching: dict[str, JsonValue] = field(default_factory=dict)

    def check(self) -> None:
        """Refuses what cannot be measured. Raises InputError naming the option."""
        if not self.alpha > 0:
            raise InputError(f"--alpha {self.alpha:g}: must be above 0")
        if self.size not in ("image", "latent"):
            raise InputError(f"--size {self.size}: choose image or latent")

    @property
    def digest(self) -> str:
        identity = [VERSION, self.alpha, self.size, self.watching]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def attended_arms(run: BenchRun, wanted: tuple[str, ...]) -> list[Arm]:
    """The arms to be watched: those named, else every one of an open editor.

    Raises:
        InputError: no such arm, or none that can be watched.
    """
    for label in wanted:
        if label not in run.arms:
            raise InputError(f"--editor {label}: this run has no such arm; it has {', '.join(run.arms)}")
    arms = [
        arm
        for arm in run.arms.values()
        if (arm.label in wanted if wanted else arm.model.startswith("diffusers/"))
    ]
    if not arms:
        raise InputError(
            f"{run.run}: no outputs of an open editor; run plantain bench generate with --editor diffusers/… first"
        )
    for arm in arms:
        if arm.kind is not ArmKind.EDITOR or not arm.model.startswith("diffusers/"):
            raise InputError(f"--editor {arm.label}: only open editors (diffusers/…) can be watched")
    return arms


async def attend(
    run: Path,
    benchmark: Benchmark,
    arm_label: str,
    watched: Watched,
    measuring: Measuring,
    *,
    terms: Terms | None = None,
    observer: ProgressObserver = SILENT,
) -> RunSummary:
    """Watches and measures what an arm lacks; nothing is measured twice with the same options.

    Args:
        run: its folder.
        benchmark: that it was generated from.
        arm_label: of the arm.
        watched: its editor.
        measuring: how maps are measured.
        terms: of the run.
        observer: told how it goes on.

    Raises:
        InputError: another benchmark, or another process writes to the run.
    """
    measuring.check()
    door = Door(terms or Terms(()))
    async with door.open(run, observer=observer) as opened:
        recorded = BenchRun(opened.journal.reader)
        if recorded.header.digest != benchmark.digest:
            raise InputError(f"{benchmark.root}: is not the benchmark that {run} was generated from")
        arm = recorded.arms[arm_label]
        outputs = recorded.outputs(arm_label) if measuring.outputs == "all" else recorded.scored(arm_label)
        made = [output for output in outputs if output.attempt is not None]
        if not made:
            raise InputError(f"{run}: {arm_label} has no outputs yet; plantain bench generate makes them")
        observer.begun(arm_label, len(made))

        repeating = _Repeating(run, recorded, benchmark, arm, watched, measuring)

        async def carry(output: Output) -> None:
            concept = concept_of(benchmark.sample(output.sample_id))
            if _is_there(opened.journal, run, arm, output, concept, measuring):
                opened.summary.kept += 1
            else:
                scores = await repeating.scores(output)
                await opened.journal.add_scores(scores)
                opened.summary.measured += 1
            observer.advanced(1)

        await opened.walk(made, carry, at_once=max(1, 2 * opened.terms.room))
    return opened.summary


@dataclass(frozen=True, slots=True)
class _Repeating:
    """The outputs of an arm, each edited once more and measured."""

    folder: Path
    run: BenchRun
    benchmark: Benchmark
    arm: Arm
    watched: Watched
    measuring: Measuring

    async def scores(self, output: Output) -> list[StoredScore]:
        """What the journal is to keep of an output; its map lies there by then."""
        sample = self.benchmark.sample(output.sample_id)
        if sample.roi is None:
            none = unscored_all("the sample has no region")
            return _stored(output, none, _asked(sample, self.measuring))
        words = self.arm.instruction(sample)
        sides = sides_to_name(words, sample.image) if self.watched.names_sides else ""
        point = self.arm.grid[output.k]
        seen = await self.watched.look(
            await asyncio.to_thread(self.benchmark.previous, sample),
            f"{words} {sides}".rstrip(),  # as the editor had it
            output_seed(self.run.reader.header.seed, sample.id, point.seed),
            concept_of(sample),
            dict(point.parameters),
        )
        return await asyncio.to_thread(self._measured, sample, output, seen)

    def _measured(self, sample: Sample, output: Output, seen: WatchedEdit) -> list[StoredScore]:
        measuring = self.measuring
        detail = _asked(sample, measuring)
        detail |= {
            "tokens": list(seen.tokens),
            "differs": _differs(self.run, output, seen.edited),
            "what": seen.what,
        }
        if seen.attention is None:
            return _stored(output, unscored_all(seen.reason), detail)
        roi = self.benchmark.roi(sample)
        found = (
            grounding(seen.on_image(), roi, alpha=measuring.alpha)
            if measuring.size == "image"
            else grounding(seen.attention, _on_latents(seen, roi), alpha=measuring.alpha)
        )
        detail |= {"threshold": found.threshold, "selected": found.selected, **measuring.watching}
        _keep_map(map_path(self.folder, self.arm, sample.id, output.k), seen.on_image())
        return _stored(output, found, detail)


def map_path(run: Path, arm: Arm, sample_id: str, k: int) -> Path:
    """Where an output's map lies: a small PNG of 16-bit grey levels of the image's shape, on the map's own range."""
    return run / FOLDER / arm.folder / f"{sample_id}_{k}.png"


def _is_there(
    journal: Journal, run: Path, arm: Arm, output: Output, concept: str, measuring: Measuring
) -> bool:
    """Whether it was measured of this concept with these options, and its map, where there is one, lies there."""
    rows = {row.metric: row for row in _rows(journal, output)}
    found = rows.get(f"attention_{MEASURES[0]}")
    if found is None or found.detail.get("options") != measuring.digest:
        return False
    if found.detail.get("concept") != concept:  # a person may name it, or name it better, at any time
        return False
    return not found.score.scored or map_path(run, arm, output.sample_id, output.k).is_file()


def _rows(journal: Journal, output: Output) -> Iterator[StoredScore]:
    for row in journal.reader.scores(output.task_id, output.generation):
        if row.round == output.k + 1:
            yield row


def _asked(sample: Sample, measuring: Measuring) -> dict[str, JsonValue]:
    """What was measured, for the record."""
    return {"options": measuring.digest, "concept": concept_of(sample)}


def concept_of(sample: Sample) -> str:
    """The words that the attention should lie on: the benchmark's key concept, else the finding; "" for neither."""
    return sample.key_concept or sample.finding


def unscored_all(reason: str) -> Grounding:
    """Every measure unscored for one reason."""
    none = unscored(reason)
    return Grounding(none, none, none, none, none, None, 0.0)


def _stored(output: Output, found: Grounding, detail: dict[str, JsonValue]) -> list[StoredScore]:
    scores: list[tuple[str, Score]] = [(name, getattr(found, name)) for name in MEASURES]
    return [
        StoredScore(output.task_id, output.generation, output.k + 1, f"attention_{name}", score, detail)
        for name, score in scores
    ]


def _differs(opened: BenchRun, output: Output, edited: Pixels | None) -> int | None:
    """Largest difference in grey levels between the watched edit and the stored output; None where one is missing."""
    if edited is None or output.edited is None:
        return None
    stored = decode(opened.read(output))
    if stored.shape != edited.shape:
        return 255
    return int(np.abs(stored.astype(np.int16) - edited.astype(np.int16)).max())


def _on_latents(seen: WatchedEdit, roi: Mask) -> Mask:
    """The region at the map's size: cells of which at least half lies inside."""
    assert seen.attention is not None
    size = (seen.attention.shape[1], seen.attention.shape[0])
    frame = seen.frame
    canvas = np.zeros((frame.canvas_height, frame.canvas_width), np.float32)
    inner = (frame.inner_width, frame.inner_height)
    rows, columns = slice(frame.top, frame.top + inner[1]), slice(frame.left, frame.left + inner[0])
    canvas[rows, columns] = cv2.resize(roi.astype(np.float32), inner, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(canvas, size, interpolation=cv2.INTER_AREA) >= 0.5)


def _keep_map(path: Path, attention: npt.NDArray[np.float32]) -> None:
    """For pictures only: half a kilobyte to a few dozen each."""
    values = scaled(attention)
    if values is None:
        return
    longest = max(values.shape)
    if longest > MAP_SIDE:
        size = (round(values.shape[1] * MAP_SIDE / longest), round(values.shape[0] * MAP_SIDE / longest))
        values = cv2.resize(values, size, interpolation=cv2.INTER_AREA)
    path.parent.mkdir(parents=True, exist_ok=True)
    done, data = cv2.imencode(".png", np.round(values * 65535).astype(np.uint16))
    assert done
    replace_file(path, data.tobytes())
