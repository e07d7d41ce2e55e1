"""OpenAI as an image model by images/edits: a picture and words in, one picture out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.known import picture_tokens
from plantain.models.hosted.openai.provider import OpenAIOptions
from plantain.models.hosted.openai.responses import served_tier
from plantain.models.hosted.openai.wire import REQUEST_ID, OpenAITransport
from plantain.models.hosted.pictures import from_base64
from plantain.models.hosted.scrub import add_counts, child, count, objects, text
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles import EncodedImage

PATH = "/images/edits"
SIZE = "1024x1024"
MOST_PICTURES = 16
"""Pictures that one request may hold, by OpenAI's reference."""

FIELDS = {
    "quality": "image_quality",
    "input_fidelity": "input_fidelity",
    "moderation": "moderation",
    "background": "background",
    "output_format": "output_format",
}
"""Fields of a request -> the option that fills them, where it is set."""


class OpenAIPictureModel:
    """Draws with one OpenAI image model; this format takes no seed."""

    most_pictures = MOST_PICTURES

    def __init__(self, wire: OpenAITransport, options: OpenAIOptions) -> None:
        self._wire = wire
        self._fields: JsonObject = {"n": 1, "size": options.image_size or SIZE}
        self._fields |= {
            field: value for field, option in FIELDS.items() if (value := getattr(options, option, "")) != ""
        }
        self.mask: Literal["", "clear", "white"] = "clear" if options.mask else ""
        self.name = wire.name
        self._listed = options.listed or wire.name
        asked = {**self._fields, **({"mask": True} if options.mask else {})}
        self.sampling = " ".join(f"{name}={value}" for name, value in asked.items())

    async def draw(
        self, parts: Sequence[str | EncodedImage], seed: int, mask: EncodedImage | None = None
    ) -> JsonObject:
        pictures = [part for part in parts if isinstance(part, EncodedImage)]
        fields = {"model": self._wire.model, "prompt": words_of(parts), **self._fields}
        name = "image[]" if len(pictures) > 1 else "image"
        files = [(name, picture) for picture in pictures]
        return await self._wire.post_form(PATH, fields, files + ([("mask", mask)] if mask else []))

    def read_picture(self, body: JsonObject) -> bytes:
        return read_picture(body)

    def read_usage(self, body: JsonObject) -> Usage:
        return read_usage(body, self._listed, str(self._fields["size"]), str(self._fields.get("quality", "")))

    def scrub(self, body: JsonObject) -> object:
        return self._wire.scrub(body)

    async def aclose(self) -> None:
        await self._wire.aclose()


def words_of(parts: Sequence[str | EncodedImage]) -> str:
    """The text of a request; pictures go beside it, in order, and among several each is named in its place."""
    several = sum(isinstance(part, EncodedImage) for part in parts) > 1
    lines: list[str] = []
    shown = 0
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
        elif several:
            shown += 1
            lines.append(f"(picture {shown})")
    return "\n".join(lines)


def read_picture(body: JsonObject) -> bytes:
    """The picture of an answer.

    Raises:
        Fault: there is none, or only an address, which is not followed; one that holds the picture itself is read.
        BadImage: it is not base64.
    """
    pictures = objects(body.get("data"))
    if not pictures:
        raise Fault(Outcome(OutcomeKind.NO_IMAGE, "the answer held no picture"), 200)
    encoded, address = text(pictures[-1], "b64_json"), text(pictures[-1], "url")
    if encoded or address.startswith("data:"):
        return from_base64(encoded or address)
    if address:
        raise Fault(Outcome(OutcomeKind.MALFORMED, "an address came instead of a picture"), 200)
    raise Fault(Outcome(OutcomeKind.NO_IMAGE, "the answer held no picture"), 200)


def read_usage(body: JsonObject, model: str = "", size: str = SIZE, quality: str = "") -> Usage:
    """Tokens of words and pictures; what of the output is not told to be words is picture.

    Args:
        body: the answer; it names the quality that it was drawn in, where the request left that to the provider.
        model: "provider/model", to count pictures whose tokens the answer does not tell.
        size, quality: as asked for.
    """
    usage, pictures = child(body, "usage"), len(objects(body.get("data")))
    read, written = child(usage, "input_tokens_details"), child(usage, "output_tokens_details")
    output, shown = _with_details(count(usage, "output_tokens"), written)
    if pictures and not output:
        each = picture_tokens(model, text(body, "size") or size, text(body, "quality") or quality)
        output = shown = pictures * each if each else None
    all_read, seen = _with_details(count(usage, "input_tokens"), read)
    return Usage(
        served_model=text(body, "model"),
        response_id=text(body, REQUEST_ID),
        input_tokens=(all_read or None) if pictures else all_read,
        output_tokens=output,
        cached_tokens=count(read, "cached_tokens"),
        cached_image_tokens=count(child(read, "cached_tokens_details"), "image_tokens"),
        input_image_tokens=seen,
        output_image_tokens=shown,
        images=pictures or None,
        tier=served_tier(body),
    )


def _with_details(whole: int | None, details: JsonObject) -> tuple[int | None, int | None]:
    """All tokens, at least those of the details, and those of them that are not told to be words."""
    told = add_counts(count(details, "text_tokens"), count(details, "image_tokens"))
    tokens = max((n for n in (whole, told) if n is not None), default=None)
    if tokens is None:
        return None, None
    words = count(details, "text_tokens")
    return tokens, tokens - words if words is not None else (count(details, "image_tokens") or tokens)
