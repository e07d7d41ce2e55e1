"""The hosted judge of MedEBench's three dimensions: our prompt, any provider's language model that sees pictures."""

from __future__ import annotations

import hashlib

import orjson

from plantain.models.hosted.asking import MOST_ASKS, Conversation, Question, ask_until_readable
from plantain.models.hosted.prompts import checked_library, scale_form_asked, scale_prompt
from plantain.models.hosted.scale_answers import Declined, Incomplete, read_scale, scale_schema
from plantain.records import Outcome, OutcomeKind, ScaleReport
from plantain.roles import EncodedImage, Reply, ScaleRequest, failed
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MEDEBENCH

VERSION = "1"
"""Of this adapter; raised when the same model and prompt could be asked or read differently."""


class HostedScaleJudge:
    """Scores outputs of a benchmark from 0 to 10, in one answer of two steps: differences first, then the scores.

    MedEBench's paper draws the steps as two; its published judge answers both at once, and so does this one: each
    draw is one call.

    A folder's own wording that asks for no JSON gets none: the answer is read as it comes, and asked for once.
    """

    def __init__(self, model: Conversation, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts, options.edition)
        self.name = model.name
        self._schema = scale_schema(MEDEBENCH) if scale_form_asked(self._library, MEDEBENCH) else None
        schema = hashlib.sha256(orjson.dumps(self._schema)).hexdigest()[:12] if self._schema else "none"
        labels = ",".join(self._library.label(name) for name in ("scale", "scale_system", "again"))
        self.fingerprint = (
            f"scale@{VERSION} {model.name} {model.sampling} prompts={labels} "
            f"rubric={MEDEBENCH.name}@{MEDEBENCH.version} schema={schema}"
        )

    async def score(self, request: ScaleRequest) -> Reply[ScaleReport]:
        """The three scores.

        An answer with some scores is asked for again once, and then taken with those that it has; the others are
        unscored with the reason. A judge that says that it will not is `refused`, an answer without any score
        `malformed`.
        """
        prompt = scale_prompt(self._library, request, MEDEBENCH)
        parts: list[str | EncodedImage] = ["Before:", request.previous, "After the edit:", request.edited]
        if request.truth is not None:
            parts += ["The real result:", request.truth]
        question = Question(prompt.system, (*parts, prompt.text), request.seed, self._schema)
        partial: list[ScaleReport] = []
        declined: list[str] = []

        def read(text: str) -> ScaleReport:
            try:
                return read_scale(text, MEDEBENCH)
            except Incomplete as error:
                partial.append(error.report)
                raise
            except Declined as error:
                declined.append(str(error))
                raise

        reply = await ask_until_readable(
            self._model, question, prompt, self._library, read, MOST_ASKS if self._schema else 1
        )
        if reply.outcome.kind is not OutcomeKind.MALFORMED:
            return reply
        best = max(partial, key=_scored, default=None)
        if best is not None and _scored(best):
            return Reply(best, usage=reply.usage, raw=reply.raw)
        if declined:
            return failed(Outcome(OutcomeKind.REFUSED, declined[-1]), reply.usage, reply.raw)
        return reply

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._model.aclose()


def _scored(report: ScaleReport) -> int:
    """How many of the three dimensions have a score."""
    return sum(
        score.scored
        for score in (report.editing_accuracy, report.context_preservation, report.visual_quality)
    )
