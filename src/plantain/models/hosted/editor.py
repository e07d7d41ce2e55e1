"""The hosted editor: sends the original and an instruction to any provider's image model, and checks its image.

Images are sent as squares, and the edit is returned at the original's size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from plantain.findings import sides_to_name
from plantain.models.hosted.answers import JsonObject, record
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.prompts import Prompt, PromptLibrary, with_images
from plantain.models.hosted.reports import checked_library
from plantain.pixels.decode import BadImage, declared_size, decode_output, decode_untrusted
from plantain.pixels.encode import encode_png, prepare, resize, restore
from plantain.privacy.permission import made_from
from plantain.records import Geometry, InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed
from plantain.roles.options import ProviderOptions

VERSION = "1"
"""Version of this adapter, part of fingerprints; raise it with each change of requests or reading."""

SMALLEST_SIDE = 128
"""Least side of an edited image in pixels; a smaller one is an icon."""

_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))


@dataclass(frozen=True)
class ImageModel:
    """One image model at one provider.

    Attributes:
        name: "provider/model".
        sampling: every setting that its answers depend on.
        send: sends texts and images in order, and the seed; returns the answer's body, or raises Fault.
        read_image: finds the image in that body, or raises Fault or BadImage.
        read_usage: reads counts of tokens and images from that body.
        aclose: closes the connection; the next call opens another.
        most_images: maximum number of images in one request.
    """

    name: str
    sampling: str
    send: Callable[[Sequence[str | EncodedImage], int], Awaitable[JsonObject]]
    read_image: Callable[[JsonObject], bytes]
    read_usage: Callable[[JsonObject], Usage]
    aclose: Callable[[], Awaitable[None]]
    most_images: int


class HostedEditor:
    """An editor that uses a hosted image model, with exactly one request per edit, since each image is billed."""

    def __init__(self, model: ImageModel, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts)
        self.name = model.name
        self.fingerprint = (
            f"retouching@{VERSION} {model.name} {model.sampling} prompts={self._library.label('edit')}"
        )
        for shots in (1, 2):
            _check_marks(self._library, shots)
        self.by_example = self._library.label("edit_by_example")
        """Name and hash of the prompt with demonstrations, part of the request hash."""

    @property
    def most_demonstrations(self) -> int:
        """The largest number of demonstrations in a request: each has two images, the new case one."""
        return (self._model.most_images - 1) // 2

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return the edited image, for a square original exactly as the model returned it, or the reason for none."""
        model, shown = self._model, request.demonstrations
        if len(shown) > self.most_demonstrations:
            why = f"{len(shown)} demonstrations; {self.name} can be shown {self.most_demonstrations} at most"
            return failed(Outcome(OutcomeKind.NOT_APPLICABLE, why))
        original, geometry = await to_square(request.original)
        prompt, parts = await self._asked(request, original)
        usage, raw = Usage(), "{}"
        try:
            body = await model.send(parts, request.seed)
            usage, raw = model.read_usage(body), record(prompt.label, model.sampling, [body])
            data = model.read_image(body)
            del body
            edited = await from_square(data, geometry)
        except Fault as fault:
            usage, outcome = fault.usage or usage, fault.outcome
            raw = record(prompt.label, model.sampling, [fault.raw]) if fault.raw or raw == "{}" else raw
        except BadImage as error:
            outcome = Outcome(OutcomeKind.MALFORMED, str(error))
        else:
            return Reply(EditedImage(edited), usage=usage, raw=raw)
        return failed(outcome, usage, raw)

    async def _asked(
        self, request: EditRequest, original: EncodedImage
    ) -> tuple[Prompt, list[str | EncodedImage]]:
        """Return the prompt, and texts and images in the order in which they are sent.

        Demonstrations are part of one turn, each labelled, the new case last: models take examples in turns of their
        own for their own answers.
        """
        shown = sides_to_name(request.instruction, request.image)
        values: dict[str, object] = {"instruction": request.instruction, "shown": shown}
        if not request.demonstrations:
            prompt = self._library.render("edit", values)
            return prompt, [original, prompt.text]
        values["examples"] = [example.instruction for example in request.demonstrations]
        prompt = self._library.render("edit_by_example", values)
        examples = [image for one in request.demonstrations for image in (one.before, one.after)]
        images = [(await to_square(image))[0] for image in examples]
        return prompt, with_images(prompt.text, {"image": [*images, original]})

    async def aclose(self) -> None:
        """Close the connection; it opens again with the next call."""
        await self._model.aclose()


def _check_marks(library: PromptLibrary, shots: int) -> None:
    """Raise InputError if a user's template has the wrong number of image marks."""
    values = {"examples": ["example"] * shots, "instruction": "example", "shown": ""}
    marked = library.render("edit_by_example", values).text.count("<image>")
    if marked != 2 * shots + 1:
        raise InputError(
            f"prompt edit_by_example.md.j2: marks {marked} images with <image> for {shots} "
            f"example{'s' if shots > 1 else ''}; mark two for each and one for the new case"
        )


async def to_square(original: EncodedImage) -> tuple[EncodedImage, Geometry | None]:
    """Return (square image for a hosted editor, its geometry); a square original is unchanged, its geometry None.

    Other images are padded with black to a square of their longer side, without resampling, as PNG: providers keep
    other aspect ratios only approximately, but return exact squares.
    """
    width, height = declared_size(original.data)
    return (original, None) if width == height else await asyncio.to_thread(_padded, original)


def _padded(original: EncodedImage) -> tuple[EncodedImage, Geometry]:
    pixels = decode_untrusted(original.data, "original")
    square, geometry = prepare(pixels, side=max(pixels.shape[:2]))
    return EncodedImage(made_from(encode_png(square), original.data), "image/png"), geometry


async def from_square(data: bytes, geometry: Geometry | None) -> EncodedImage:
    """Convert an editor's square image back to the original's proportions and size.

    Args:
        data: bytes of the image.
        geometry: place of the original in the square. None for a square original: its edit is returned unchanged,
            whatever its size.

    Raises:
        BadImage: it cannot be read, is not square, or is too small.
    """
    width, height = declared_size(data)
    if width == 0:
        raise BadImage("the editor returned bytes that are not an image")
    if width != height:
        raise BadImage(f"the editor returned {width}x{height} pixels, not the square that it received")
    if width < SMALLEST_SIDE:
        raise BadImage(f"the editor returned only {width}x{height} pixels")
    if geometry is None:
        return EncodedImage(data, media_type(data))
    return EncodedImage(await asyncio.to_thread(_unpadded, data, geometry), "image/png")


def _unpadded(data: bytes, geometry: Geometry) -> bytes:
    side = max(geometry.width, geometry.height)
    return encode_png(restore(resize(decode_output(data), side, side), geometry))


def media_type(data: bytes) -> str:
    """Return an image file's media type by its first bytes; "application/octet-stream" if unknown."""
    return next((kind for start, kind in _KINDS if data.startswith(start)), "application/octet-stream")
