"""The hosted editor: the original and an instruction to any provider's image model, one checked picture back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Protocol

import orjson

from plantain.models.answers import JsonObject
from plantain.models.asking import record
from plantain.models.faults import Fault
from plantain.models.options import ProviderOptions
from plantain.models.pictures import from_square, to_square
from plantain.models.prompts import Prompt, checked_library
from plantain.pixels.decode import BadImage
from plantain.records import InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

PICTURE = "<picture>"
"""Where the prompt with demonstrations shows a picture."""

VERSION = "1"
"""Of this adapter; raised when the same model and prompt could be asked or read differently."""


class PictureModel(Protocol):
    """One image model at one provider.

    `draw` sends texts and pictures in order and gives the answer's body, or raises `Fault`; `read_picture` finds the
    picture in it, or raises `Fault` or `BadImage`. `sampling` names all that answers depend on beside the request;
    `most_pictures` is how many pictures one request may hold.
    """

    @property
    def name(self) -> str: ...

    @property
    def sampling(self) -> str: ...

    @property
    def most_pictures(self) -> int: ...

    async def draw(self, parts: Sequence[str | EncodedImage], seed: int) -> JsonObject: ...

    def read_picture(self, body: JsonObject) -> bytes: ...

    def read_usage(self, body: JsonObject) -> Usage: ...

    def scrub(self, body: JsonObject) -> object: ...

    async def aclose(self) -> None: ...


def interleaved(text: str, pictures: Sequence[EncodedImage]) -> Iterator[str | EncodedImage]:
    """The prompt's texts with a picture at each mark. Text from data cannot hold the mark: its brackets are replaced.

    Raises:
        InputError: a person's template marks another number of pictures than there are.
    """
    texts = text.split(PICTURE)
    if len(texts) != len(pictures) + 1:
        raise InputError(
            f"prompt edit_by_example.md.j2: marks {len(texts) - 1} pictures with {PICTURE}; "
            f"{len(pictures)} are to be shown"
        )
    for words, picture in zip_longest(texts, pictures):
        if words.strip():
            yield words.strip()
        if picture is not None:
            yield picture


class HostedEditor:
    """Edits with a hosted image model. Never asks twice: each picture is billed, and the loop has its rounds."""

    def __init__(self, model: PictureModel, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts)
        self.name = model.name
        self.fingerprint = (
            f"retouching@{VERSION} {model.name} {model.sampling} prompts={self._library.label('edit')}"
        )
        self.by_example = self._library.label("edit_by_example")
        """Name and hash of the prompt that shows demonstrations: part of such a request's identity."""

    @property
    def most_demonstrations(self) -> int:
        """Each takes two pictures, and the new case one."""
        return (self._model.most_pictures - 1) // 2

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """The edited picture as the model returned it, or the outcome that left none."""
        model = self._model
        shown = request.demonstrations
        if len(shown) > self.most_demonstrations:
            why = f"{len(shown)} demonstrations; {self.name} can be shown {self.most_demonstrations} at most"
            return failed(Outcome(OutcomeKind.NOT_APPLICABLE, why))
        original, geometry = await asyncio.to_thread(to_square, request.original)
        prompt, parts = await self._asked(request, original)
        usage, raw = Usage(), "{}"
        try:
            body = await model.draw(parts, request.seed)
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

    async def _asked(
        self, request: EditRequest, original: EncodedImage
    ) -> tuple[Prompt, list[str | EncodedImage]]:
        """The prompt, and texts and pictures in the order in which they are sent.

        With demonstrations it is one turn, labelled throughout, the new case last: models take examples that come as
        turns of their own for answers that they gave.
        """
        if not request.demonstrations:
            prompt = self._library.render("edit", {"instruction": request.instruction})
            return prompt, [original, prompt.text]
        examples = [shown.instruction for shown in request.demonstrations]
        prompt = self._library.render(
            "edit_by_example", {"examples": examples, "instruction": request.instruction}
        )
        pictures: list[EncodedImage] = []
        for shown in request.demonstrations:
            for picture in (shown.before, shown.after):
                pictures.append((await asyncio.to_thread(to_square, picture))[0])
        return prompt, list(interleaved(prompt.text, [*pictures, original]))

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._model.aclose()
