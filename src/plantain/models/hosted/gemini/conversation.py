"""Gemini as a language model: one question, one answer in text."""

from __future__ import annotations

from plantain.models.hosted.asking import Heard, Question, hear
from plantain.models.hosted.gemini.provider import GeminiOptions
from plantain.models.hosted.gemini.replies import read_text, read_usage
from plantain.models.hosted.gemini.requests import TEXT_SAMPLING, contents, text_config
from plantain.models.hosted.gemini.wire import GeminiTransport


class GeminiConversation:
    """Asks one Gemini model."""

    def __init__(self, wire: GeminiTransport, options: GeminiOptions) -> None:
        self._wire = wire
        self._options = options
        self.name = wire.name
        self.sampling = options.sampling(*TEXT_SAMPLING)

    async def ask(self, question: Question) -> Heard:
        """The answer's words, or why there are none."""
        sent = self._wire.generate(contents(question.parts), text_config(question, self._options))
        return await hear(sent, read_text, read_usage, self._wire.scrub)

    async def aclose(self) -> None:
        await self._wire.aclose()
