"""Large catalogues, and models as slow, faulty and wordy as hosted ones."""

from __future__ import annotations

import asyncio
import hashlib
import random
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import orjson

from plantain.catalogue.store import Catalogue
from plantain.journal import (
    BlobRef,
    BlobStore,
)
from plantain.pipeline.recipe import Recipe
from plantain.pixels.encode import encode_jpeg
from plantain.records import (
    OK,
    Criterion,
    CriterionResult,
    Observations,
    Outcome,
    OutcomeKind,
    Usage,
)
from plantain.roles import EditedImage, EditRequest, EncodedImage, JudgeRequest, Reply, WriteRequest, failed
from simulated.releases import PATTERNS, drawn, numbered, source

FINDINGS = 6
WORDS = (
    "Add soft drusen, small and pale, temporal to the fovea of this image; keep vessels, disc and borders. "
)
REASON = "The change is where it was requested, of that extent, and nothing else has moved. " * 4


@dataclass
class Simulated:
    """Fills all three roles: as slow, as faulty and as wordy as a hosted model, from a few images in turn.

    Three calls in a hundred break, four edits in a hundred return no image, three edits in ten are not accepted.
    """

    images: list[bytes]
    latency_s: float = 0.02
    name: str = "simulated/all"
    fingerprint: str = "1"

    async def _asked(self, seed: int) -> float:
        # Not of the seed alone: a call that breaks is made again.
        drawn = random.random()
        await asyncio.sleep(self.latency_s * random.uniform(0.5, 2.0))
        return drawn

    async def write(self, request: WriteRequest) -> Reply[str]:
        if await self._asked(request.seed) < 0.03:
            return failed(_BROKEN)
        return Reply(f"{WORDS * 3}({request.round}, {request.seed})", OK, usage(1800, 700), raw=RAW)

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        drawn = await self._asked(request.seed)
        if drawn < 0.03:
            return failed(_BROKEN)
        if request.seed % 25 == 0:
            return failed(Outcome(OutcomeKind.NO_IMAGE, "the answer holds no image"), usage(1200, 90), RAW)
        image = self.images[request.seed % len(self.images)]
        return Reply(EditedImage(EncodedImage(image, "image/jpeg")), OK, usage(1200, 0, images=1), raw=RAW)

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        if await self._asked(request.seed) < 0.03:
            return failed(_BROKEN)
        return Reply(seen(request.seed % 10 >= 3), OK, usage(3100, 900), raw=RAW)


_BROKEN = Outcome(OutcomeKind.TRANSPORT, "the connection failed (ReadError)")
RAW = orjson.dumps({"candidates": [{"content": {"parts": [{"text": REASON}]}}], "usageMetadata": {}}).decode()


def usage(taken: int, given: int, images: int = 0) -> Usage:
    """The usage that a call reports."""
    return Usage(input_tokens=taken, output_tokens=given, images=images, served_model="simulated-1")


def seen(good: bool) -> Observations:
    """A judge's report of the usual length."""
    result = CriterionResult(good, 0.9, (), "Read off the images, in a sentence as long as most are.")
    return Observations(
        dict.fromkeys(Criterion, result), {"has_disease": good, "other_disease": False}, good, REASON
    )


def images(folder: Path, count: int) -> list[bytes]:
    """So many different images in normal form, 29 kB each: grey, with their number in the corner."""
    folder.mkdir(exist_ok=True)
    made = []
    for number in range(count):
        path = folder / f"{number}.jpg"
        if not path.exists():
            pixels = np.full((1024, 1024, 3), 96, np.uint8)
            pixels[:8, :128] = [[[(number >> bit & 1) * 255] * 3 for bit in range(16) for _ in range(8)]] * 8
            path.write_bytes(encode_jpeg(pixels))
        made.append(path.read_bytes())
    return made


def recipe_for(catalogue: Path) -> Recipe:
    """The build whose plan it is."""
    return Recipe.model_validate(
        {
            "name": "million",
            "data": {"catalogue": catalogue, "directions": ["add"], "check_text": False},
            "models": {"writer": "simulated/all", "editor": "simulated/all", "judge": "simulated/all"},
            "limits": {"concurrency": 64},
            "providers": {
                "simulated": {"kind": "openai-compatible", "base_url": "https://models.example/v1"}
            },
        }
    )


class Originals:
    """The catalogue's images: of 64 pixels, each with its own hash; written unsynced."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs, self._drawn = blobs, drawn(64)

    def put(self, number: int, *, write: bool = True) -> BlobRef:
        """The image of that number, under its hash."""
        data, pixels = self._drawn[number % PATTERNS]
        data = numbered(data, number)
        sha256 = hashlib.sha256(data).hexdigest()
        if write:
            path = self._blobs.path(sha256)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return BlobRef(sha256, len(data), "image/jpeg", pixels)


def make_catalogue(folder: Path, tasks: int) -> None:
    """A catalogue whose images make that many tasks."""
    with Catalogue.create(folder) as catalogue:
        originals = Originals(catalogue.blobs)
        numbers = iter(range(-(-tasks // FINDINGS)))
        while batch := list(islice(numbers, 20_000)):
            images = [source(number, originals.put(number).sha256) for number in batch]
            with catalogue.transaction():
                catalogue.insert(images, {})
