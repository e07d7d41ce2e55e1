"""`offline/templates`: writes instructions from the finding's data, and learns from what failed before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plantain.offline import wordings
from plantain.offline.language import PHRASINGS, Intent, compose, read_instruction
from plantain.offline.refinement import failed_codes, first_intent, next_intent
from plantain.records import Attempt, FailureCode, Finding, SourceImage, Usage
from plantain.roles import Reply, WriteRequest

VERSION = "1"


class TemplateWriter:
    """A writer without a language model: the finding's own data in plain sentences.

    What it writes depends on the task, the image's attributes, the history and the seed; on nothing else. It never
    writes the same instruction twice in a task.
    """

    name = "offline/templates"
    fingerprint = VERSION

    async def write(self, request: WriteRequest) -> Reply[str]:
        """An instruction for this round; the outcome is always ok."""
        return Reply(write_instruction(request), usage=Usage(served_model=f"{self.name}@{VERSION}"))


def write_instruction(request: WriteRequest) -> str:
    """The instruction of this round, in plain English.

    The first round draws place, extent and conspicuity from the seed. Later rounds start from the last request and
    change what its failed criteria point to; reasons of every earlier round are kept in words.
    """
    rng = np.random.default_rng(request.seed)
    direction = request.task.direction
    finding, image, history = request.finding, request.image, request.history
    if history:
        intent = next_intent(history, finding, image, direction, rng)
    else:
        intent = first_intent(finding, image, direction, rng)
    codes = lessons(history)
    written = {attempt.instruction for attempt in history}
    for phrasing, wording in _phrasings(rng):
        text = _text(intent, finding, image, codes, phrasing, wording)
        if text not in written:
            return text
    return f"{text} This is request number {request.round}."


def lessons(history: Sequence[Attempt]) -> set[FailureCode]:
    """Reasons of all earlier failures; of "too subtle" and "overcorrected" only the one that was said last."""
    kept: set[FailureCode] = set()
    opposite = {
        FailureCode.TOO_SUBTLE: FailureCode.OVERCORRECTED,
        FailureCode.OVERCORRECTED: FailureCode.TOO_SUBTLE,
    }
    for attempt in history:
        for code in failed_codes(attempt):
            if code in opposite:
                kept.discard(opposite[code])
            kept.add(code)
    return kept


def _phrasings(rng: np.random.Generator) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Every combination of wordings once, from a start that the seed picks."""
    total = PHRASINGS * wordings.WORDINGS**3
    start = int(rng.integers(total))
    stride = 37  # coprime to every power of two, so that neighbours in the walk differ in all their parts
    for step in range(total):
        number = (start + step * stride) % total
        number, phrasing = divmod(number, PHRASINGS)
        number, first = divmod(number, wordings.WORDINGS)
        third, second = divmod(number, wordings.WORDINGS)
        yield phrasing, (first, second, third)


def _text(
    intent: Intent,
    finding: Finding,
    image: SourceImage,
    codes: set[FailureCode],
    phrasing: int,
    wording: tuple[int, int, int],
) -> str:
    """Command, presentation, lessons, what stays, what must not appear, and that nothing else may change.

    A sentence that would change how the command is read is left out: a user's own finding may hold words that sound
    like a place or a size.
    """
    text = compose(intent, finding, phrasing=phrasing)
    sentences = (
        *wordings.presentation(intent, finding, image, wording[0]),
        *wordings.emphasis(codes, intent, finding),
        *wordings.stays(intent, finding, wording[1]),
        wordings.forbidden(wording[2]),
        wordings.minimal(wording[0]),
    )
    for sentence in sentences:
        longer = f"{text} {sentence}"
        if _reads_as(longer, intent, (finding,)):
            text = longer
    return text


def _reads_as(text: str, intent: Intent, findings: Sequence[Finding]) -> bool:
    return read_instruction(text, findings) == intent
