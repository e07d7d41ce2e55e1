"""Small deterministic models and a small catalogue, for tests of the run itself rather than of the models."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import skimage.data

from plantain.catalogue.store import Catalogue
from plantain.pipeline.recipe import Method, Recipe
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_mask, encode_source, prepare
from plantain.records import (
    Criterion,
    CriterionResult,
    FailureCode,
    Licence,
    Observations,
    Outcome,
    OutcomeKind,
    SourceImage,
    Usage,
)
from plantain.roles import EditedImage, EditRequest, EncodedImage, JudgeRequest, Reply, WriteRequest, failed
from plantain.rubrics import MED_BANANA


class CallLog:
    """One line per call that was really made, written so that a SIGKILL cannot lose it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path

    def note(self, *parts: object) -> None:
        if self.path is None:
            return
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, ("\t".join(map(str, parts)) + "\n").encode())
        os.close(fd)

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path and self.path.exists() else []


class QuickWriter:
    name = "quick/writer"
    fingerprint = "1"

    def __init__(self, log: CallLog) -> None:
        self.log = log

    async def write(self, request: WriteRequest) -> Reply[str]:
        self.log.note(request.task.id, request.round, "write")
        text = (
            f"{request.task.direction} {request.task.finding}, try {request.round}, seed {request.seed % 97}"
        )
        return Reply(text, usage=Usage(served_model="quick/writer@1"))


class QuickEditor:
    """Draws a disc that depends on the seed; refuses one call in eight."""

    name = "quick/editor"
    fingerprint = "1"

    def __init__(self, log: CallLog) -> None:
        self.log = log

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        self.log.note(request.instruction, "edit", request.seed)
        if request.seed % 8 == 0:
            return failed(Outcome(OutcomeKind.REFUSED, "not this one"))
        return Reply(await asyncio.to_thread(drawn, request.original.data, request.seed))


class Draws(QuickEditor):
    """Keeps every request; answers it by a function, else with `drawn`, and never refuses by itself."""

    def __init__(self, answer: Callable[[EditRequest], EditedImage | Outcome] | None = None) -> None:
        super().__init__(CallLog())
        self.answer = answer or (lambda request: drawn(request.original.data, request.seed))
        self.requests: list[EditRequest] = []

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        self.requests.append(request)
        answer = self.answer(request)
        return failed(answer) if isinstance(answer, Outcome) else Reply(answer)


@lru_cache(maxsize=200)
def drawn(original: bytes, seed: int) -> EditedImage:
    """A disc half as bright, drawn once in a process: most test runs have the same images and seeds."""
    pixels = decode(original).copy()
    mask = np.zeros(pixels.shape[:2], np.uint8)
    rng = np.random.default_rng(seed)
    centre = tuple(int(v) for v in rng.integers(300, 700, 2))
    cv2.circle(mask, centre, 40, 1, -1)
    pixels[mask > 0] //= 2
    return EditedImage(
        EncodedImage(encode_jpeg(pixels), "image/jpeg"),
        EncodedImage(encode_mask(mask > 0), "image/png"),
        "local",
    )


class QuickJudge:
    """Passes about two edits in five, by the seed."""

    name = "quick/judge"
    fingerprint = "1"

    def __init__(self, log: CallLog) -> None:
        self.log = log

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        self.log.note(request.instruction, "judge", request.seed)
        digest = hashlib.sha256(str(request.seed).encode()).digest()
        good = digest[0] < 100
        results = {
            criterion: CriterionResult(
                good or digest[i + 1] < 128, 0.5, () if good else (FailureCode.TOO_SUBTLE,)
            )
            for i, criterion in enumerate(Criterion)
        }
        return Reply(Observations(results, {"has_disease": good, "other_disease": False}, good, "by seed"))


class Judges(QuickJudge):
    """Keeps every request, and answers it by a function."""

    def __init__(self, answer: Callable[[JudgeRequest], Observations | Outcome]) -> None:
        super().__init__(CallLog())
        self.answer = answer
        self.requests: list[JudgeRequest] = []

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        self.requests.append(request)
        answer = self.answer(request)
        return failed(answer) if isinstance(answer, Outcome) else Reply(answer)


def observed(good: bool, reason: str = "as told") -> Observations:
    """The same of every criterion."""
    results = {criterion: CriterionResult(good, 0.9) for criterion in Criterion}
    return Observations(results, {"has_disease": good}, good, reason)


def judging(*good: bool) -> Judges:
    """A judge that gives one verdict after another, and repeats the last one."""
    verdicts = list(good)
    return Judges(lambda request: observed(verdicts.pop(0) if len(verdicts) > 1 else verdicts[0]))


def quick_method(log: CallLog, *, max_rounds: int = 3, judges: int = 1, seed: int = 5) -> Method:
    return Method(
        writer=QuickWriter(log),
        editor=QuickEditor(log),
        judges=(QuickJudge(log),) * judges,
        rubric=MED_BANANA,
        policy="all-pass",
        threshold=0.7,
        max_rounds=max_rounds,
        seed=seed,
    )


def quick_catalogue(
    path: Path, images: int = 3, *, code: bytes | None = None, changes: Mapping[str, Any] | None = None
) -> Path:
    """A catalogue of differently cropped, real fundus photographs, with other records where changes are given."""
    with Catalogue.create(path) as catalogue:
        for i in range(images):
            record, data = quick_image(i)
            catalogue.add(replace(record, **(changes or {})), data, code)
    return path


@cache
def quick_image(i: int) -> tuple[SourceImage, bytes]:
    """The i-th of them, prepared once in a process: that takes much of a second."""
    pixels, geometry = prepare(skimage.data.retina()[: 1411 - 8 * i])
    data = encode_source(pixels)
    digest = hashlib.sha256(data).hexdigest()
    image = SourceImage(
        id=f"retina-{i}",
        dataset="scikit-image",
        modality="fundus",
        labels=("normal",),
        licence=Licence.OPEN,
        source_sha256=digest,
        prepared_sha256=digest,
        geometry=geometry,
        view="fundus",
    )
    return image, data


def quick_recipe(
    catalogue: Path,
    *,
    findings: tuple[str, ...] = ("AMD", "Diabetes", "Cataract"),
    data: Mapping[str, object] | None = None,
    limits: Mapping[str, object] | None = None,
    parts: Mapping[str, object] | None = None,
    **loop: object,
) -> Recipe:
    """A recipe of these models; other sections are given as parts."""
    return Recipe.model_validate(
        {
            "name": "quick",
            "seed": 5,
            "data": {
                "catalogue": catalogue,
                "findings": findings,
                "directions": ["add"],
                "check_text": False,
                **(data or {}),
            },
            "models": {"writer": "quick/writer", "editor": "quick/editor", "judge": "quick/judge"},
            "loop": {"max_rounds": 3, **loop},
            "limits": {"concurrency": 3, **(limits or {})},
            **(parts or {}),
        }
    )


def at_url(url: str, *names: str, **section: object) -> dict[str, dict[str, object]]:
    """Sections of the named providers, or of three, that are one server."""
    names = names or ("gemini", "openai", "openai-compatible")
    return {name: {**section, "base_url": url if name == "gemini" else f"{url}/v1"} for name in names}
