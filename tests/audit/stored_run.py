"""A run with edits made elsewhere, written directly into a journal; and judges that answer by rule."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import Journal, RecordedTask, RunHeader, StoredVerdict, TaskRow
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import (
    OK,
    Attempt,
    Criterion,
    CriterionResult,
    Direction,
    EditTask,
    Geometry,
    Licence,
    Observations,
    Outcome,
    OutcomeKind,
    SourceImage,
    TaskState,
)
from plantain.roles import JudgeRequest, Reply, failed
from plantain.rubrics import MED_BANANA, decide

FINDINGS = ("AMD", "Cataract")
SIDE = 64


def seen(*passed: bool | None) -> Observations:
    """A report on the four criteria, in their order; one value stands for all."""
    answers = passed * 4 if len(passed) == 1 else passed
    return Observations(
        {name: CriterionResult(answer) for name, answer in zip(Criterion, answers, strict=True)},
        {"has_disease": True, "other_disease": False},
        None,
        "by rule",
    )


class RuleJudge:
    """Answers by a rule on the request; None means no answer. Counts its requests."""

    def __init__(
        self, name: str, rule: Callable[[JudgeRequest], Observations | None], fingerprint: str = "1"
    ) -> None:
        self.name, self.rule, self.fingerprint, self.asked = name, rule, fingerprint, 0

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        self.asked += 1
        answer = self.rule(request)
        return failed(Outcome(OutcomeKind.REFUSED, "not this one")) if answer is None else Reply(answer)


def stored_run(folder: Path, images: int = 3, missing: int | None = None) -> Path:
    """A closed run with two rounds a task, none qualified; `missing` names an image without its bytes."""

    async def build() -> None:
        rng = np.random.default_rng(3)
        async with Journal.create(folder, RunHeader("id", "stored", 1, {}, "0.1.0")) as journal:
            for number in range(images):
                pixels = rng.integers(0, 255, (SIDE, SIDE, 3), np.uint8)
                data = encode_source(pixels)
                blob = journal.put_blob(data, "image/jpeg")
                geometry = Geometry(SIDE, SIDE, "pad", 0, 0, SIDE, SIDE)
                record = SourceImage(
                    f"i{number}", "sample", "fundus", (), Licence.OPEN, str(number), blob.sha256, geometry
                )
                await journal.add_images([(record, blob)])
                if missing == number:
                    journal.reader.blob_path(blob.sha256).unlink()
                await journal.add_recorded(
                    [recorded(journal, record, pixels, finding, rng) for finding in FINDINGS]
                )

    asyncio.run(build())
    return folder


def recorded(
    journal: Journal, image: SourceImage, pixels: np.ndarray, finding: str, rng: np.random.Generator
) -> RecordedTask:
    name = hashlib.sha256(f"{image.id} {finding}".encode()).hexdigest()[:20]
    task = EditTask(name, image.id, image.modality, finding, Direction.ADD)
    attempts, verdicts, blobs = [], [], []
    for number in (1, 2):
        edited = pixels.copy()
        edited[8 * number : 8 * number + 8] = rng.integers(0, 255)
        blob = journal.put_blob(encode_jpeg(edited), "image/jpeg")
        attempts.append(
            Attempt(name, 0, number, f"Add {finding}.", OK, blob.sha256, blob.sha256, judge_outcome=OK)
        )
        verdict = decide(seen(False), MED_BANANA, judge="old/judge", policy="all-pass", threshold=0.7)
        verdicts.append(StoredVerdict(name, 0, number, verdict))
        blobs.append(blob)
    row = TaskRow(task, 0, TaskState.FAILED, 2, "realism (hard edge)")
    return RecordedTask(row, tuple(attempts), tuple(verdicts), (), tuple(blobs))


def taxonomy_of(*names: str) -> Taxonomy:
    """The taxonomy with these findings only, so that an audit draws nothing else."""
    taxonomy = load_taxonomy()
    return replace(taxonomy, findings=tuple(one for one in taxonomy.findings if one.name in names))
