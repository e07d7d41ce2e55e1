"""The hosted editor: the original and an instruction to any provider's image model, one checked picture back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal, Protocol

import orjson

from plantain.findings import sides_to_name
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.asking import record
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.pictures import from_square, looks_at_pixels, mask_for, to_square
from plantain.models.hosted.prompts import Prompt, PromptLibrary, checked_library, with_images
from plantain.pixels.decode import BadImage, declared_size
from plantain.records import Geometry, InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed
from plantain.roles.options import ProviderOptions

VERSION = "1"
"""Of this adapter; raised when the same model and prompt could be asked or read differently."""


class PictureModel(Protocol):
    """One image model at one provider.

    `draw` sends texts and pictures in order and gives the answer's body, or raises `Fault`; `read_picture` finds the
    picture in it, or raises `Fault` or `BadImage`. `sampling` names all that answers depend on beside the request;
    `most_pictures` is how many pictures one request may hold; `mask` how it is shown the region where the change
    belongs, "clear" or "white" there, "" where it is not.
    """

    @property
    def mask(self) -> Literal["", "clear", "white"]: ...

    @property
    def name(self) -> str: ...

    @property
    def sampling(self) -> str: ...

    @property
    def most_pictures(self) -> int: ...

    async def draw(
        self, parts: Sequence[str | EncodedImage], seed: int, mask: EncodedImage | None = None
    ) -> JsonObject: ...

    def read_picture(self, body: JsonObject) -> bytes: ...

    def read_usage(self, body: JsonObject) -> Usage: ...

    def scrub(self, body: JsonObject) -> object: ...

    async def aclose(self) -> None: ...


def _check_marks(library: PromptLibrary, shots: int) -> None:
    """Raise InputError if a user's template marks another number of images than there are."""
    values = {"examples": ["example"] * shots, "instruction": "example", "shown": ""}
    marked = library.render("edit_by_example", values).text.count("<picture>")
    if marked != 2 * shots + 1:
        raise InputError(
            f"prompt edit_by_example.md.j2: marks {marked} images with <picture> for {shots} "
            f"example{'s' if shots > 1 else ''}; mark two for each and one for the new case"
        )


class HostedEditor:
    """Edits with a hosted image model. Never asks twice: each picture is billed, and the loop has its rounds."""

    def __init__(self, model: PictureModel, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts)
        self.name = model.name
        self.fingerprint = (
            f"retouching@{VERSION} {model.name} {model.sampling} prompts={self._library.label('edit')}"
        )
        for shots in (1, 2):
            _check_marks(self._library, shots)
        self.by_example = self._library.label("edit_by_example")
        """Name and hash of the prompt that shows demonstrations: part of such a request's identity."""

    @property
    def takes_region(self) -> bool:
        """It is shown where to edit, and asks for that."""
        return bool(self._model.mask)

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
        mask = None
        if model.mask:
            if request.region is None:
                why = f"{self.name} is to be shown a mask, and no region is known"
                return failed(Outcome(OutcomeKind.NOT_APPLICABLE, why))
            clear = model.mask == "clear"
            mask = await asyncio.to_thread(mask_for, request.region, request.original, clear=clear)
        original, geometry = await _squared(request.original)
        prompt, parts = await self._asked(request, original)
        usage, raw = Usage(), "{}"
        try:
            body = await model.draw(parts, request.seed, mask)
            usage, raw = model.read_usage(body), orjson.dumps(model.scrub(body)).decode()
            data = model.read_picture(body)
            del body
            if looks_at_pixels(data, geometry):
                edited = await asyncio.to_thread(from_square, data, request.original, geometry)
            else:
                edited = from_square(data, request.original, geometry)
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
        shown = sides_to_name(request.instruction, request.image)
        if not request.demonstrations:
            prompt = self._library.render("edit", {"instruction": request.instruction, "shown": shown})
            return prompt, [original, prompt.text]
        examples = [example.instruction for example in request.demonstrations]
        prompt = self._library.render(
            "edit_by_example", {"examples": examples, "instruction": request.instruction, "shown": shown}
        )
        pictures: list[EncodedImage] = []
        for example in request.demonstrations:
            for picture in (example.before, example.after):
                pictures.append((await _squared(picture))[0])
        return prompt, with_images(prompt.text, {"picture": [*pictures, original]})

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._model.aclose()


async def _squared(picture: EncodedImage) -> tuple[EncodedImage, Geometry | None]:
    """As `to_square`; only what is not square is worth another thread."""
    width, height = declared_size(picture.data)
    if width == height:
        return picture, None
    return await asyncio.to_thread(to_square, picture)
