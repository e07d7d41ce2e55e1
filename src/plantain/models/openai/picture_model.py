"""OpenAI as an image model by images/edits: a picture and words in, one picture out."""

from __future__ import annotations

from plantain.models.answers import JsonObject
from plantain.models.faults import Fault
from plantain.models.openai.wire import OpenAITransport
from plantain.models.options import ProviderOptions
from plantain.models.pictures import from_base64
from plantain.models.scrub import child, count, objects, text
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles import EncodedImage

PATH = "/images/edits"
SIZE = "1024x1024"


class OpenAIPictureModel:
    """Draws with one OpenAI image model; this format takes no seed."""

    def __init__(self, wire: OpenAITransport, options: ProviderOptions) -> None:
        self._wire = wire
        self._fields: JsonObject = {"n": 1, "size": options.image_size or SIZE}
        if options.image_quality:
            self._fields["quality"] = options.image_quality
        self.name = wire.name
        self.sampling = " ".join(f"{name}={value}" for name, value in self._fields.items())

    async def draw(self, picture: EncodedImage, text: str, seed: int) -> JsonObject:
        fields = {"model": self._wire.model, "prompt": text, **self._fields}
        return await self._wire.post_picture(PATH, fields, picture)

    def read_picture(self, body: JsonObject) -> bytes:
        return read_picture(body)

    def read_usage(self, body: JsonObject) -> Usage:
        return read_usage(body)

    def scrub(self, body: JsonObject) -> object:
        return self._wire.scrub(body)

    async def aclose(self) -> None:
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
