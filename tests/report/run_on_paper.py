"""A small run with every state and oddity, written into a real journal, so that tables can be counted by hand.

Originals are real images that are installed with the dependencies; the "edits" are soft ellipses drawn on them.

Tasks (image, finding, direction, rounds, state):
    chest   Pneumothorax      add     fail, pass                    success 2
    chest   Pleural Effusion  add     pass                          success 1
    chest   Lung Lesion       add     fail x 5                      failed 5
    chest2  Pneumothorax      remove  fail, refused, pass           success 3   (source rendered: synthetic)
    chest   Cardiomegaly      add     -                             not_applicable
    brain   glioma            add     pass                          success 1   (generation 1; generation 0: fail x 2)
    brain   meningioma        add     fail, then judge malformed    stopped 2
    fundus  AMD               add     panel of two disagree, pass   success 2
    fundus  Diabetes          add     fail                          pending
    fundus  Cataract          add     -                             pending, untouched
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np
import skimage.data

from fakes.samples import head_in_profile
from plantain.journal import BlobRef, CallResult, Journal, RunHeader, StartedCall, StoredVerdict
from plantain.pixels.encode import encode_jpeg, encode_mask, encode_source, prepare
from plantain.records import (
    OK,
    Attempt,
    CallKey,
    Criterion,
    CriterionResult,
    Direction,
    EditTask,
    FailureCode,
    Licence,
    Observations,
    Outcome,
    OutcomeKind,
    SourceImage,
    Step,
    TaskState,
    Usage,
    task_id,
)
from plantain.rubrics import MED_BANANA, decide, majority

HOSTILE = "<script>alert('plantain')</script> & \"肺\" \u202e$x^2$ \x1b[31mred"
SIDE = 320
"""Smaller than a real run's images, so that a run is built quickly."""

LICENCES = ("--licence", "matplotlib=CC0-1.0", "--licence", "pydicom-data=CC0-1.0")
"""Licences that an export of the run must name."""

MODELS = {Step.WRITE: "offline/templates", Step.EDIT: "offline/procedural", Step.JUDGE: "offline/instruments"}
REFUSED = Outcome(OutcomeKind.REFUSED, "the editor declined: cannot show this side")
MALFORMED = Outcome(OutcomeKind.MALFORMED, "the judge's reply was no JSON")

Failure = dict[Criterion, tuple[FailureCode, ...]]
SUBTLE: Failure = {Criterion.INSTRUCTION_COMPLIANCE: (FailureCode.TOO_SUBTLE,)}
SEAM: Failure = {
    Criterion.REALISM: (FailureCode.BLENDING_ARTEFACT, FailureCode.REPETITION),
    Criterion.FIDELITY_PRESERVATION: (FailureCode.HARD_EDGE,),
}
GRAIN: Failure = {Criterion.FIDELITY_PRESERVATION: (FailureCode.LOST_GRAIN,)}
PASS: Failure = {}


@dataclass(frozen=True)
class Planned:
    """One task: its rounds (failures, or an outcome of edit or judge) and its final state."""

    image: str
    finding: str
    direction: Direction
    rounds: tuple[Failure | Outcome | tuple[Failure, ...], ...]
    state: TaskState
    before: tuple[Failure, ...] = ()
    reason: str = ""


ADD, REMOVE = Direction.ADD, Direction.REMOVE
PLAN = (
    Planned("chest", "Pneumothorax", ADD, (SUBTLE, PASS), TaskState.SUCCESS),
    Planned("chest", "Pleural Effusion", ADD, (PASS,), TaskState.SUCCESS),
    Planned("chest", "Lung Lesion", ADD, (SEAM, SEAM, SUBTLE, GRAIN, SUBTLE | GRAIN), TaskState.FAILED),
    Planned("chest2", "Pneumothorax", REMOVE, (SUBTLE, REFUSED, PASS), TaskState.SUCCESS),
    Planned("chest", "Cardiomegaly", ADD, (), TaskState.NOT_APPLICABLE, reason="the heart is not in view"),
    Planned("brain", "glioma", ADD, (PASS,), TaskState.SUCCESS, before=(SUBTLE, SEAM)),
    Planned("brain", "meningioma", ADD, (SEAM, MALFORMED), TaskState.STOPPED, reason="judge: malformed"),
    Planned("fundus", "AMD", ADD, ((SUBTLE, PASS), (PASS, PASS, SEAM)), TaskState.SUCCESS),
    Planned("fundus", "Diabetes", ADD, (GRAIN,), TaskState.PENDING),
    Planned("fundus", "Cataract", ADD, (), TaskState.PENDING),
)


def build_run(run: Path, *, hostile: bool = False) -> Path:
    """Write the run into the folder `run`. `hostile`: labels, reasons and notes try to break out of the page.

    In a separate thread: while a browser is open, this one has an event loop.
    """
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, _build(run, hostile)).result()
    return run


async def _build(run: Path, hostile: bool) -> None:
    frozen = {
        "seed": 7,
        "models": {"writer": MODELS[Step.WRITE], "editor": MODELS[Step.EDIT], "judge": [MODELS[Step.JUDGE]]},
        "loop": {"max_rounds": 5, "policy": "all-pass", "threshold": 0.7},
    }
    async with Journal.create(run, RunHeader("run-on-paper", "on-paper", 7, frozen, "0.1.0")) as journal:
        images = _images(journal, hostile)
        await journal.add_images([(image, blob) for image, blob, _ in images.values()])
        for planned in PLAN:
            image, blob, pixels = images[planned.image]
            finding = f"{planned.finding} {HOSTILE}" if hostile else planned.finding
            task = EditTask(
                task_id(image.source_sha256, 0, finding, planned.direction),
                image.id,
                image.modality,
                finding,
                planned.direction,
            )
            await journal.add_tasks([task])
            writer = _Writer(journal, task, image, blob, pixels, hostile)
            if planned.before:
                for number, failure in enumerate(planned.before, 1):
                    await writer.round(0, number, failure)
                await journal.close_task(task.id, TaskState.FAILED, len(planned.before), "")
                await journal.reopen_tasks([task.id])
            for number, what in enumerate(planned.rounds, 1):
                await writer.round(int(bool(planned.before)), number, what)
            if planned.state is not TaskState.PENDING:
                await journal.close_task(task.id, planned.state, len(planned.rounds), planned.reason)
        await journal.end_session(3)


@dataclass
class _Writer:
    journal: Journal
    task: EditTask
    image: SourceImage
    blob: BlobRef
    pixels: np.ndarray
    hostile: bool
    opened: list[int] = field(default_factory=list)

    async def round(
        self, generation: int, number: int, result: Failure | Outcome | tuple[Failure, ...]
    ) -> None:
        instruction = _instruction(self.task, number, self.hostile)
        attempt = Attempt(self.task.id, generation, number, instruction)
        await self._call(generation, number, Step.WRITE, OK, answer=instruction, attempt=attempt)
        if result is REFUSED:
            refused = replace(attempt, edit_outcome=REFUSED)
            await self._call(generation, number, Step.EDIT, REFUSED, attempt=refused)
            return
        edited, mask = _edit(self.pixels, self.task, number)
        blobs = (
            self.journal.put_blob(encode_jpeg(edited), "image/jpeg"),
            self.journal.put_blob(encode_mask(mask), "image/png"),
        )
        attempt = replace(
            attempt,
            edit_outcome=OK,
            edited=blobs[0].sha256,
            raw=blobs[0].sha256,
            mask=blobs[1].sha256,
            support="local",
        )
        await self._call(generation, number, Step.EDIT, OK, attempt=attempt, blobs=blobs, flaky=number == 1)
        if isinstance(result, Outcome):
            await self._call(
                generation, number, Step.JUDGE, result, attempt=replace(attempt, judge_outcome=result)
            )
            return
        panel = result if isinstance(result, tuple) else (result,)
        verdicts = tuple(
            self._verdict(generation, number, failure, member) for member, failure in enumerate(panel)
        )
        if len(panel) > 1:
            observed = majority(
                [(v.verdict.judge, v.verdict.observations) for v in verdicts], MED_BANANA, self.task.direction
            )
            ruling = decide(observed, MED_BANANA, judge="panel", policy="all-pass", threshold=0.7)
            verdicts = (
                *(replace(v, decisive=False) for v in verdicts),
                StoredVerdict(self.task.id, generation, number, ruling, draw=0, decisive=True),
            )
        await self._call(
            generation, number, Step.JUDGE, OK, attempt=replace(attempt, judge_outcome=OK), verdicts=verdicts
        )

    def _verdict(self, generation: int, number: int, failure: Failure, draw: int) -> StoredVerdict:
        reason = "; ".join(f"{c.value} failed" for c in failure) or "nothing to object to"
        if self.hostile:
            reason += " " + HOSTILE
        observations = Observations(
            criteria={
                c: CriterionResult(
                    c not in failure, 0.8, failure.get(c, ()), f"measured 0.{3 + number} of 1 for {c.value}"
                )
                for c in Criterion
            },
            facts={"has_disease": (self.task.direction is ADD) == (not failure), "other_disease": False},
            opinion=not failure or failure == GRAIN,
            reason=reason,
        )
        verdict = decide(observations, MED_BANANA, judge=MODELS[Step.JUDGE], policy="all-pass", threshold=0.7)
        return StoredVerdict(self.task.id, generation, number, verdict, draw=draw, decisive=True)

    async def _call(
        self,
        generation: int,
        number: int,
        step: Step,
        outcome: Outcome,
        *,
        answer: str = "",
        attempt: Attempt | None = None,
        blobs: tuple[BlobRef, ...] = (),
        verdicts: tuple[StoredVerdict, ...] = (),
        flaky: bool = False,
    ) -> None:
        key = CallKey(self.task.id, generation, number, step)
        tries = 1
        if flaky:
            call = await self.journal.start_call(StartedCall(key, tries, MODELS[step], "0" * 64, None))
            lost = Outcome(OutcomeKind.TRANSPORT, "connection reset")
            await self.journal.settle_call(CallResult(call, lost, False, latency_s=0.5))
            tries = 2
        call = await self.journal.start_call(StartedCall(key, tries, MODELS[step], "0" * 64, 0.01))
        usage = Usage(served_model=MODELS[step] + "@1", input_tokens=120, output_tokens=30)
        await self.journal.settle_call(
            CallResult(
                call,
                outcome,
                True,
                usage,
                0.001,
                0.25,
                answer,
                "",
                blobs=blobs,
                attempt=attempt,
                verdicts=verdicts,
            )
        )


def _instruction(task: EditTask, number: int, hostile: bool) -> str:
    verb = "Add" if task.direction is ADD else "Remove"
    text = (
        f"{verb} a {('subtle', 'moderate', 'marked', 'large', 'very large')[number - 1]} {task.finding} on the "
        "patient's right side, with soft borders that follow the anatomy, keeping the image's own grain, all markers "
        "and everything outside this region exactly as they are."
    )
    return f"{text} {HOSTILE}" if hostile else text


def _edit(pixels: np.ndarray, task: EditTask, number: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(int(task.id[:8], 16))
    y, x = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    cy, cx = rng.uniform(0.4, 0.6, 2) * pixels.shape[0]
    mask = ((y - cy) / (0.15 * SIDE)) ** 2 + ((x - cx) / (0.1 * SIDE)) ** 2 < 1
    sign = 1 if task.direction is ADD else -1
    changed = np.clip(pixels.astype(np.int16) + sign * 14 * number, 0, 255).astype(np.uint8)
    soft = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), 4)[..., None]
    return np.rint(pixels + soft * (changed.astype(np.float32) - pixels)).astype(np.uint8), mask


@functools.cache
def _greys() -> tuple[np.ndarray, np.ndarray]:
    """The radiograph of pydicom-data and the brain slice of matplotlib, as grey levels."""
    import pydicom
    from pydicom.data import get_testdata_file

    radiograph = pydicom.dcmread(get_testdata_file("RG1_UNCR.dcm")).pixel_array.astype(np.float64)
    low, high = np.percentile(radiograph, [1, 99])
    chest = np.clip((radiograph - low) / (high - low) * 255, 0, 255).astype(np.uint8)
    slice_ = head_in_profile().astype(np.float64)
    brain = np.clip(slice_ / np.percentile(slice_, 99.5) * 255, 0, 255).astype(np.uint8)
    return chest, brain


def _images(journal: Journal, hostile: bool) -> dict[str, tuple[SourceImage, BlobRef, np.ndarray]]:
    chest, brain = _greys()
    sources = {
        "chest": ("chest_xray", "pydicom-data", np.dstack([255 - chest] * 3), False, "not a healthy chest"),
        "chest2": ("chest_xray", "pydicom-data", np.dstack([255 - chest] * 3)[:, ::-1], True, ""),
        "brain": ("brain_mri", "matplotlib", np.dstack([brain] * 3), False, "one slice of a sample volume"),
        "fundus": ("fundus", "scikit-image", skimage.data.retina(), False, ""),
    }
    images = {}
    for name, (modality, dataset, pixels, synthetic, note) in sources.items():
        prepared, geometry = prepare(np.ascontiguousarray(pixels), SIDE)
        data = encode_source(prepared)
        blob = journal.put_blob(data, "image/jpeg")
        image = SourceImage(
            id=name,
            dataset=dataset,
            modality=modality,
            labels=("Pneumothorax",) if synthetic else (),
            licence=Licence.OPEN,
            source_sha256=hashlib.sha256(name.encode()).hexdigest(),
            prepared_sha256=blob.sha256,
            geometry=geometry,
            group="patient-1" if name.startswith("chest") else None,
            synthetic=synthetic,
            note=f"{note} {HOSTILE}" if hostile else note,
        )
        images[name] = (image, blob, prepared)
    return images
