"""Describe raw pairs, by their owner's words or a hosted model, and list procedures as search terms for pairs."""

from __future__ import annotations

import asyncio
import hashlib
import tomllib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import orjson

from plantain.calls import CallSpec
from plantain.journal import CallResult
from plantain.pixels.arrays import Pixels
from plantain.pixels.encode import compressed
from plantain.records import Direction, EditTask, InputError, SourceImage, Step, TaskKind, TaskState
from plantain.records.messages import suggest
from plantain.roles import ChangeDescription, Describer, DescribeRequest, EncodedImage, Reply
from plantain.runs.open_run import OpenRun
from plantain.runs.progress import RunSummary
from plantain.runs.setup import NewRun, RunSetup, changed_since
from plantain.runs.terms import Terms

BY_OWNER = "offline/as-told"
SEAM = 8
"""Width in pixels of the white line between the two halves of a concatenated image."""

PUBLISHED = "published"
PUBLISHED_TASKS = 70
"""Tasks of MedEBench; its Table 5 names those with more than five samples."""

Describe = Callable[[DescribeRequest], Awaitable[ChangeDescription | str]]
"""Return the description of a pair, or the reason for its failure."""

Carry = Callable[[int, Describe], Awaitable[None]]
"""Prepare the pair of that number."""


async def walk_pairs(
    pairs: int, images: Iterable[SourceImage], carry: Carry, terms: Terms, run: Path
) -> RunSummary:
    """Call `carry` for every pair; return counts, cost and the reason if stopped early.

    Args:
        pairs: number of pairs.
        images: the images before, for the consent check.
        carry: called once per pair with its number and the function that describes it.
        terms: limits and consent; they name the one describer.
        run: folder of the journal of a hosted describer's calls.

    Raises:
        InputError: the describer is unknown or differs from earlier calls', or an image may not be sent to it.
    """
    name = terms.models[0]
    if name == BY_OWNER:
        for number in range(pairs):
            await carry(number, described_by_owner)
        return RunSummary()
    setup = RunSetup(terms)
    setup.check(images=images, named=[name], by="--describer")
    if name.startswith("offline/") or "/" not in name:
        raise InputError(f"--describer: {name!r}; choose {BY_OWNER} or a hosted provider/model")
    describer = setup.describer(name)
    if not isinstance(describer, Describer):
        raise InputError(f"--describer: {name!r} cannot describe pairs")
    new = NewRun("descriptions", 0, {"kind": "describe"})
    async with setup.open(run, new) as opened:
        changed = await changed_since(opened.journal, "describe.models", {"describer": describer.fingerprint})
        if changed:
            raise InputError(f"{run}: {changed}")

        async def describe(request: DescribeRequest) -> ChangeDescription | str:
            return await _described(opened, describer, request)

        async def one(number: int) -> None:
            await carry(number, describe)

        await opened.walk(range(pairs), one)
    return opened.summary


async def described_by_owner(request: DescribeRequest) -> ChangeDescription:
    """Describe a pair by its owner's prompt; without one, the task is the prompt."""
    return ChangeDescription(request.prompt or f"{request.task}.")


def concatenated(previous: Pixels, changed: Pixels) -> EncodedImage:
    """Return one PNG with both images: before on the left; after on the right, scaled to the same height."""
    height = previous.shape[0]
    if changed.shape[0] != height:
        width = max(1, round(changed.shape[1] * height / changed.shape[0]))
        changed = cv2.resize(changed, (width, height), interpolation=cv2.INTER_AREA)
    seam = np.full((height, SEAM, 3), 255, np.uint8)
    return EncodedImage(compressed(".png", np.hstack([previous, seam, changed])), "image/png")


async def _described(
    opened: OpenRun, describer: Describer, request: DescribeRequest
) -> ChangeDescription | str:
    """Return a hosted model's description, new or from the journal, or the reason for its failure."""
    pair = hashlib.sha256(request.pair.data).hexdigest()
    task_id = hashlib.sha256(f"describe\x1f{pair}".encode()).hexdigest()[:20]  # by its pixels: paid for once
    blob = await asyncio.to_thread(opened.journal.put_blob, request.pair.data, request.pair.media_type)
    await opened.journal.add_images([(replace(request.image, id=task_id, prepared_sha256=blob.sha256), blob)])
    task = EditTask(task_id, task_id, request.organ, "describe", Direction.CHANGE, TaskKind.BENCH)
    await opened.journal.add_tasks([task])
    identity: dict[str, object] = {
        "fingerprint": describer.fingerprint,
        "pair": pair,
        "said": [request.organ, request.task, request.prompt, request.modality],
        "seed": request.seed,
    }

    async def send() -> Reply[ChangeDescription]:
        return await describer.describe(request)

    async def settle(reply: Reply[ChangeDescription], draft: CallResult) -> CallResult:
        return draft if reply.value is None else replace(draft, answer=orjson.dumps(reply.value).decode())

    spec = CallSpec(Step.WRITE, 1, 0, describer.name, identity, send, settle)
    answer = await opened.calls(task.id, 1).answer(spec)
    state = TaskState.SUCCESS if answer.outcome.ok else TaskState.STOPPED
    await opened.close_task(task.id, state, 1, answer.outcome.reason)
    if not answer.outcome.ok:
        return f"{answer.outcome.kind.value}: {answer.outcome.reason}".rstrip(": ")
    found = orjson.loads(answer.text)
    return ChangeDescription(**{**found, "rephrasings": tuple(found["rephrasings"])})


def listed_procedures(name: str) -> dict[str, tuple[str, ...]]:
    """List the tasks of MedEBench's Table 5 by organ, as search terms for image pairs.

    Raises:
        InputError: the name is not "published".
    """
    if name != PUBLISHED:
        raise InputError(f"--procedures: no list of {name!r}; {suggest(name, (PUBLISHED,))}")
    lists = tomllib.loads(Path(__file__).with_name("procedures.toml").read_text(encoding="utf-8"))
    return {organ: tuple(found) for organ, found in lists[PUBLISHED].items()}
