"""Gemini as a language model: one question, one answer in text."""

from __future__ import annotations

import orjson

from plantain.models.asking import Heard, Question, unheard
from plantain.models.faults import Fault
from plantain.models.gemini.replies import read_text, read_usage
from plantain.models.gemini.requests import contents, sampling, text_config
from plantain.models.gemini.wire import GeminiTransport
from plantain.models.options import ProviderOptions


class GeminiConversation:
    """Asks one Gemini model."""

    def __init__(self, wire: GeminiTransport, options: ProviderOptions) -> None:
        self._wire = wire
        self._options = options
        self.name = wire.name
        self.sampling = sampling(options)

    async def ask(self, question: Question) -> Heard:
        """The answer's words, or why there are none."""
        try:
            body = await self._wire.generate(contents(question.parts), text_config(question, self._options))
        except Fault as fault:
            return unheard(fault)
        usage, raw = read_usage(body), orjson.dumps(self._wire.scrub(body)).decode()
        try:
            return Heard(read_text(body), usage, raw)
        except Fault as fault:
            return unheard(fault, usage, raw)

    async def aclose(self) -> None:
        await self._wire.aclose()
