"""Image models behind images/edits: OpenAI's own, and open editors behind servers that speak its format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plantain.models.hosted.answers import (
    JsonObject,
    add_counts,
    child,
    count,
    from_base64,
    objects,
    reported_cost,
    stated,
    text,
)
from plantain.models.hosted.editor import ImageModel
from plantain.models.hosted.faults import answer_fault
from plantain.models.hosted.openai.compatible import ServerProfile
from plantain.models.hosted.openai.provider import OpenAIFormat
from plantain.models.hosted.openai.responses import served_tier
from plantain.models.hosted.openai.wire import REQUEST_ID, OpenAIWire
from plantain.models.registry import image_tokens
from plantain.records import OutcomeKind, Usage
from plantain.roles import EncodedImage

if TYPE_CHECKING:
    from plantain.models.hosted.openai.batch import OpenAIBatch

PATH = "/images/edits"
SIZE = "1024x1024"
MOST_IMAGES = 16
"""In one request."""

OPENAI = ServerProfile("max_output_tokens", ("image_quality", "input_fidelity"))
"""OpenAI's own service, by its reference."""

FIELDS = {
    "quality": "image_quality",
    "input_fidelity": "input_fidelity",
    "num_inference_steps": "steps",
    "guidance_scale": "guidance",
    "true_cfg_scale": "true_cfg_scale",
    "negative_prompt": "negative_prompt",
}
"""Fields of a request -> the option that fills them, if it is set."""


def image_model(
    wire: OpenAIWire | OpenAIBatch,
    options: OpenAIFormat,
    kind: str = "openai",
    server: ServerProfile = OPENAI,
) -> ImageModel:
    """Make an image model of OpenAI or of a compatible server, for editors.

    Settings that the kind of server does not support are not sent; `sampling` names them.
    """
    seeded = "use_seed" in server.edits and options.get("use_seed")
    asked = stated({field: options.get(option) for field, option in FIELDS.items()})
    taken = {field: value for field, value in asked.items() if FIELDS[field] in server.edits}
    size = options.image_size or SIZE
    fields: JsonObject = {"n": 1, "size": size, **taken}
    if server is not OPENAI:
        fields["response_format"] = "b64_json"
    left_out = [field for field in asked if field not in taken]
    left_out += ["seed"] if options.get("use_seed") and not seeded else []

    async def send(parts: Sequence[str | EncodedImage], seed: int) -> JsonObject:
        images = [part for part in parts if isinstance(part, EncodedImage)]
        name = server.images if len(images) > 1 else "image"
        files = [(name, image) for image in images]
        body = {"model": wire.model, "prompt": words_of(parts), **fields}
        return await wire.post_form(PATH, {**body, "seed": seed % 2**31} if seeded else body, files)

    def usage(body: JsonObject) -> Usage:
        return read_usage(body, options.context.listed or wire.name, size, options.image_quality)

    known = {"server": kind, **fields, "seed": seeded or None}
    known["left_out"] = ",".join(left_out) or None
    sampling = " ".join(f"{name}={value}" for name, value in stated(known).items())
    return ImageModel(wire.name, sampling, send, read_image, usage, wire.aclose, MOST_IMAGES)


def words_of(parts: Sequence[str | EncodedImage]) -> str:
    """Join a request's texts to one prompt; with several images, a line "(image N)" marks the place of each."""
    several = sum(isinstance(part, EncodedImage) for part in parts) > 1
    lines: list[str] = []
    shown = 0
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
        elif several:
            shown += 1
            lines.append(f"(image {shown})")
    return "\n".join(lines)


def read_image(body: JsonObject) -> bytes:
    """Read the answer's image, base64 or a data URL.

    Raises:
        Fault: the answer has no image, or only an image's address, which is not followed.
        BadImage: it is not base64.
    """
    fields = [text(image, name) for image in objects(body.get("data")) for name in ("url", "b64_json")]
    if encoded := [field for field in fields if field and not field.startswith(("http:", "https:"))]:
        return from_base64(encoded[-1])
    if any(fields):
        raise answer_fault(OutcomeKind.MALFORMED, "an address came instead of an image")
    raise answer_fault(OutcomeKind.NO_IMAGE, "the answer contained no image")


def read_usage(body: JsonObject, model: str = "", size: str = SIZE, quality: str = "") -> Usage:
    """Read text and image tokens of an answer; output not counted as text counts as image.

    Args:
        body: the answer; it names the quality of the image if the request left that to the provider.
        model: "provider/model", to look up the tokens of images if the answer omits them.
        size, quality: the requested size and quality.
    """
    usage, images = child(body, "usage"), len(objects(body.get("data")))
    read, written = child(usage, "input_tokens_details"), child(usage, "output_tokens_details")
    output, shown = _with_details(count(usage, "output_tokens"), written)
    if images and not output:
        each = image_tokens(model, text(body, "size") or size, text(body, "quality") or quality)
        output = shown = images * each if each else None
    all_read, seen = _with_details(count(usage, "input_tokens"), read)
    return Usage(
        served_model=text(body, "model"),
        response_id=text(body, REQUEST_ID),
        input_tokens=(all_read or None) if images else all_read,
        output_tokens=output,
        cached_tokens=count(read, "cached_tokens"),
        cached_image_tokens=count(child(read, "cached_tokens_details"), "image_tokens"),
        input_image_tokens=seen,
        output_image_tokens=shown,
        images=images or None,
        tier=served_tier(body),
        reported_usd=reported_cost(usage),
    )


def _with_details(whole: int | None, details: JsonObject) -> tuple[int | None, int | None]:
    """Return all tokens, at least the sum of the details, and the part that is not counted as text."""
    words = count(details, "text_tokens")
    in_detail = add_counts(words, count(details, "image_tokens"))
    tokens = max((n for n in (whole, in_detail) if n is not None), default=None)
    if tokens is None:
        return None, None
    return tokens, tokens - words if words is not None else (count(details, "image_tokens") or tokens)
