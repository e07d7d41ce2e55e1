"""Who puts pairs into words: our own describer, which says only what it was told, or a hosted model under terms."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, replace

import cv2
import numpy as np
import orjson

from plantain.calls import CallSpec, TaskCalls
from plantain.journal import CallResult
from plantain.pixels.arrays import Pixels
from plantain.records import Direction, EditTask, InputError, Step, TaskKind, Usage, derive_seed
from plantain.roles import ChangeDescription, Describer, DescribeRequest, EncodedImage, Reply
from plantain.runs.door import Door

AS_TOLD = "offline/as-told"
GIVEN = ("modality", "action", "entity", "region", "context")
"""What the owner of a pair may say of it, beside organ, task and prompt."""

SEAM = 8
"""Pixels of white between the two halves of a concatenated picture."""

_VERBS = {
    "remove": ("Take away", "Erase", "Eliminate"),
    "add": ("Insert", "Introduce", "Put in"),
    "repair": ("Mend", "Restore", "Make whole"),
    "restore": ("Repair", "Rebuild", "Bring back"),
    "reconstruct": ("Rebuild", "Restore", "Re-form"),
    "reduce": ("Lessen", "Diminish", "Make smaller"),
    "correct": ("Put right", "Rectify", "Set right"),
    "fill": ("Close up", "Fill in", "Pack"),
    "straighten": ("Make straight", "Align", "Even out"),
    "replace": ("Exchange", "Substitute", "Swap out"),
}


class GivenDescription:
    """Describes a pair without looking at it: what its owner says, in a fixed order of words. No model."""

    name = AS_TOLD
    fingerprint = "as-told@1"

    async def describe(self, request: DescribeRequest) -> Reply[ChangeDescription]:
        """The owner's words; a description only where action and entity, or a prompt, were given."""
        given = {name: request.given.get(name, "").strip() for name in GIVEN}
        prompt = request.prompt.strip() or f"{request.task.strip().rstrip('.')}."
        description = ChangeDescription(
            prompt=prompt, rephrasings=rephrased(prompt), description=_sentence(given), **given
        )
        return Reply(description, usage=Usage(served_model=self.fingerprint))


def rephrased(prompt: str) -> tuple[str, ...]:
    """Other wordings of an instruction that begins with a verb that we know; none for any other.

    Example:
        >>> rephrased("Remove the mole.")
        ('Take away the mole.', 'Erase the mole.', 'Eliminate the mole.')
    """
    match = re.match(r"\s*(?:please\s+)?([a-z]+)\s+(.+)", prompt, re.IGNORECASE | re.DOTALL)
    if match is None:
        return ()
    return tuple(f"{verb} {match[2].strip()}" for verb in _VERBS.get(match[1].casefold(), ()))


def _sentence(given: dict[str, str]) -> str:
    """What was told as one sentence; "" where it says neither what was done nor to what."""
    if not given["action"] or not given["entity"]:
        return ""
    start = f"{given['modality']}: " if given["modality"] else ""
    where = f" ({given['region']})" if given["region"] else ""
    rest = f"; {given['context']}" if given["context"] else ""
    text = f"{start}{given['entity']}{where} was {given['action']}{rest}."
    return text[0].upper() + text[1:]


def describer_of(door: Door, name: str) -> Describer:
    """The model of that name that puts pairs into words: any hosted "provider/model".

    Raises:
        InputError: no such provider, a missing key or extra, or a provider without language models.
    """
    provider_name, _, model = name.partition("/")
    if provider_name == "offline" or not model:
        raise InputError(f"--describer: {name!r}; give {AS_TOLD} or a hosted provider/model")
    found = door.describer(name)
    if not hasattr(found, "describe"):
        raise InputError(f"--describer: {name!r} cannot describe pairs")
    return found


def concatenated(previous: Pixels, changed: Pixels) -> EncodedImage:
    """One picture of both: before on the left, after on the right, PNG; the after is brought to the before's height."""
    height = previous.shape[0]
    width = max(1, round(changed.shape[1] * height / changed.shape[0]))
    after = (
        cv2.resize(changed, (width, height), interpolation=cv2.INTER_AREA)
        if changed.shape[0] != height
        else changed
    )
    seam = np.full((height, SEAM, 3), 255, np.uint8)
    done, data = cv2.imencode(".png", cv2.cvtColor(np.hstack([previous, seam, after]), cv2.COLOR_RGB2BGR))
    if not done:
        raise ValueError("cannot encode the pair")
    return EncodedImage(data.tobytes(), "image/png")


def describing_task(request: DescribeRequest) -> EditTask:
    """The task under which a pair's description is journalled: named by its pixels, so that it is never paid twice."""
    text = hashlib.sha256(request.pair.data).hexdigest()
    task_id = hashlib.sha256(f"describe\x1f{text}".encode()).hexdigest()[:20]
    return EditTask(task_id, request.image.id, request.organ, "describe", Direction.CHANGE, TaskKind.BENCH)


async def described(
    calls: TaskCalls, describer: Describer, request: DescribeRequest
) -> ChangeDescription | str:
    """A description through the memoised calls of its task, or why there is none."""
    identity: dict[str, object] = {
        "fingerprint": describer.fingerprint,
        "pair": hashlib.sha256(request.pair.data).hexdigest(),
        "said": [request.organ, request.task, request.prompt, sorted(request.given.items())],
        "seed": request.seed,
    }

    async def send() -> Reply[ChangeDescription]:
        return await describer.describe(request)

    async def settle(reply: Reply[ChangeDescription], draft: CallResult) -> CallResult:
        if reply.value is None:
            return draft
        return replace(draft, answer=orjson.dumps(asdict(reply.value)).decode())

    answer = await calls.answer(CallSpec(Step.WRITE, 1, 0, describer.name, identity, send, settle))
    if not answer.outcome.ok:
        return f"{answer.outcome.kind.value}: {answer.outcome.reason}".rstrip(": ")
    answered = orjson.loads(answer.text)
    return ChangeDescription(**{**answered, "rephrasings": tuple(answered["rephrasings"])})


def chosen_rephrasing(rephrasings: Sequence[str], seed: int, sample_id: str) -> str:
    """One of several paraphrases, drawn by seed and sample; "" where there is none."""
    if not rephrasings:
        return ""
    return rephrasings[derive_seed(seed, "rephrasing", sample_id) % len(rephrasings)]
