"""Gemini as an editor: the original and an instruction in, one picture out."""

from __future__ import annotations

import asyncio

import orjson

from plantain.models.asking import record
from plantain.models.faults import Fault
from plantain.models.gemini.replies import read_picture, read_usage
from plantain.models.gemini.requests import contents, picture_config, sampling
from plantain.models.gemini.wire import GeminiTransport
from plantain.models.options import ProviderOptions
from plantain.models.pictures import from_square, to_square
from plantain.models.prompts import checked_library
from plantain.pixels.decode import BadImage
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, Reply, failed

VERSION = "1"


class GeminiEditor:
    """Edits with one Gemini image model. Never asks twice: each picture is billed, and the loop has its rounds."""

    def __init__(self, wire: GeminiTransport, options: ProviderOptions) -> None:
        self._wire = wire
        self._options = options
        self._library = checked_library(options.prompts)
        self._sampling = sampling(options)
        self.name = wire.name
        self.fingerprint = (
            f"gemini-editor@{VERSION} {wire.name} {self._sampling} prompts={self._library.label('edit')}"
        )

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """The edited picture as the model returned it, or the outcome that left none."""
        prompt = self._library.render("edit", {"instruction": request.instruction})
        original, geometry = await asyncio.to_thread(to_square, request.original)
        usage, raw = Usage(), "{}"
        try:
            body = await self._wire.generate(
                contents((original, prompt.text)), picture_config(request.seed, self._options)
            )
            usage, raw = read_usage(body), orjson.dumps(self._wire.scrub(body)).decode()
            data, _ = read_picture(body)
            edited = await asyncio.to_thread(from_square, data, request.original, geometry)
        except Fault as fault:
            raw = orjson.dumps(fault.raw).decode() if fault.raw else raw
            return failed(fault.outcome, usage, record(prompt.label, self._sampling, [raw]))
        except BadImage as error:
            outcome = Outcome(OutcomeKind.MALFORMED, str(error))
            return failed(outcome, usage, record(prompt.label, self._sampling, [raw]))
        return Reply(edited, usage=usage, raw=record(prompt.label, self._sampling, [raw], edited.note))

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._wire.aclose()
