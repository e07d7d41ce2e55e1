"""OpenAI as an editor by images/edits: the original and an instruction in, one picture out."""

from __future__ import annotations

import asyncio

import orjson

from plantain.models.answers import JsonObject
from plantain.models.asking import record
from plantain.models.faults import Fault
from plantain.models.openai.wire import OpenAITransport
from plantain.models.options import ProviderOptions
from plantain.models.pictures import from_base64, from_square, to_square
from plantain.models.prompts import checked_library
from plantain.models.scrub import child, count, objects, text
from plantain.pixels.decode import BadImage
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, Reply, failed

VERSION = "1"
PATH = "/images/edits"
SIZE = "1024x1024"


class OpenAIEditor:
    """Edits with one OpenAI image model. Never asks twice: each picture is billed, and the loop has its rounds."""

    def __init__(self, wire: OpenAITransport, options: ProviderOptions) -> None:
        self._wire = wire
        self._library = checked_library(options.prompts)
        self._fields: JsonObject = {"model": wire.model, "n": 1, "size": options.image_size or SIZE}
        if options.image_quality:
            self._fields["quality"] = options.image_quality
        self._sampling = " ".join(
            f"{name}={value}" for name, value in self._fields.items() if name != "model"
        )
        self.name = wire.name
        self.fingerprint = (
            f"openai-editor@{VERSION} {wire.name} {self._sampling} prompts={self._library.label('edit')}"
        )

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """The edited picture as the model returned it, or the outcome that left none."""
        prompt = self._library.render("edit", {"instruction": request.instruction})
        original, geometry = await asyncio.to_thread(to_square, request.original)
        usage, raw = Usage(), "{}"
        try:
            fields = {**self._fields, "prompt": prompt.text}
            body = await self._wire.post_picture(PATH, fields, original)
            usage, raw = read_usage(body), orjson.dumps(self._wire.scrub(body)).decode()
            edited = await asyncio.to_thread(from_square, read_picture(body), request.original, geometry)
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


def read_picture(body: JsonObject) -> bytes:
    """The picture of an answer.

    Raises:
        Fault: there is none, or only an address, which is not followed.
        BadImage: it is not base64.
    """
    pictures = objects(body.get("data"))
    if not pictures:
        raise Fault(Outcome(OutcomeKind.NO_IMAGE, "the answer held no picture"), 200)
    encoded = text(pictures[-1], "b64_json")
    if encoded:
        return from_base64(encoded)
    if text(pictures[-1], "url"):
        raise Fault(Outcome(OutcomeKind.MALFORMED, "an address came instead of a picture"), 200)
    raise Fault(Outcome(OutcomeKind.NO_IMAGE, "the answer held no picture"), 200)


def read_usage(body: JsonObject) -> Usage:
    """Tokens of words and pictures; where the output is not broken down, all of it is picture."""
    usage = child(body, "usage")
    output = count(usage, "output_tokens")
    of_images = count(child(usage, "output_tokens_details"), "image_tokens")
    return Usage(
        served_model=text(body, "model"),
        input_tokens=count(usage, "input_tokens"),
        output_tokens=output,
        cached_tokens=count(child(usage, "input_tokens_details"), "cached_tokens"),
        input_image_tokens=count(child(usage, "input_tokens_details"), "image_tokens"),
        output_image_tokens=output if of_images is None else of_images,
        images=len(objects(body.get("data"))) or None,
    )
