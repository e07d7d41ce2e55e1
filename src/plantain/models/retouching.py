"""The hosted editor: the original and an instruction to any provider's image model, one checked picture back."""

from __future__ import annotations

import asyncio
from typing import Protocol

import orjson

from plantain.models.answers import JsonObject
from plantain.models.asking import record
from plantain.models.faults import Fault
from plantain.models.options import ProviderOptions
from plantain.models.pictures import from_square, to_square
from plantain.models.prompts import checked_library
from plantain.pixels.decode import BadImage
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

VERSION = "1"
"""Of this adapter; raised when the same model and prompt could be asked or read differently."""


class PictureModel(Protocol):
    """One image model at one provider.

    `draw` sends and gives the answer's body, or raises `Fault`; `read_picture` finds the picture in it, or raises
    `Fault` or `BadImage`. `sampling` names all that answers depend on beside the request.
    """

    @property
    def name(self) -> str: ...

    @property
    def sampling(self) -> str: ...

    async def draw(self, picture: EncodedImage, text: str, seed: int) -> JsonObject: ...

    def read_picture(self, body: JsonObject) -> bytes: ...

    def read_usage(self, body: JsonObject) -> Usage: ...

    def scrub(self, body: JsonObject) -> object: ...

    async def aclose(self) -> None: ...


class HostedEditor:
    """Edits with a hosted image model. Never asks twice: each picture is billed, and the loop has its rounds."""

    def __init__(self, model: PictureModel, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts)
        self.name = model.name
        self.fingerprint = (
            f"retouching@{VERSION} {model.name} {model.sampling} prompts={self._library.label('edit')}"
        )

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """The edited picture as the model returned it, or the outcome that left none."""
        model = self._model
        prompt = self._library.render("edit", {"instruction": request.instruction})
        original, geometry = await asyncio.to_thread(to_square, request.original)
        usage, raw = Usage(), "{}"
        try:
            body = await model.draw(original, prompt.text, request.seed)
            usage, raw = model.read_usage(body), orjson.dumps(model.scrub(body)).decode()
            edited = await asyncio.to_thread(
                from_square, model.read_picture(body), request.original, geometry
            )
        except Fault as fault:
            usage = fault.usage or usage
            raw = orjson.dumps(fault.raw).decode() if fault.raw else raw
            return failed(fault.outcome, usage, record(prompt.label, model.sampling, [raw]))
        except BadImage as error:
            outcome = Outcome(OutcomeKind.MALFORMED, str(error))
            return failed(outcome, usage, record(prompt.label, model.sampling, [raw]))
        return Reply(edited, usage=usage, raw=record(prompt.label, model.sampling, [raw], edited.note))

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._model.aclose()
