"""An open editor behind a server that speaks OpenAI's /images/edits, with what diffusion models take beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.openai.compatible import Settings
from plantain.models.hosted.openai.picture_model import PATH, SIZE, read_picture, read_usage, words_of
from plantain.models.hosted.openai.servers import ServerProfile
from plantain.models.hosted.openai.wire import OpenAITransport
from plantain.records import InputError, Usage
from plantain.roles import EncodedImage

FIELD_OF = {
    "image_quality": "quality",
    "output_format": "output_format",
    "background": "background",
    "input_fidelity": "input_fidelity",
    "steps": "num_inference_steps",
    "guidance": "guidance_scale",
    "true_cfg_scale": "true_cfg_scale",
    "negative_prompt": "negative_prompt",
}
"""Settings of a recipe -> the field of a request; size and seed are always asked for."""

SETTINGS = frozenset({"image_size", "use_seed", "mask", *FIELD_OF})


class ServedPictureModel:
    """Draws with one served editor.

    Settings that its kind of server does not take are left out of every request; `sampling` says which.

    Args:
        wire: to the server, or to several.
        options: what is asked for.
        server: which kind it is.

    Raises:
        InputError: a mask is to be shown to a server that takes none, or the server makes no edits.
    """

    def __init__(self, wire: OpenAITransport, options: Settings, server: ServerProfile) -> None:
        where = f"providers.{wire.name.partition('/')[0]}"
        if not server.edits:
            raise InputError(f"{where}.server: {server.name} makes no edits; name it writer or judge")
        if options.mask and not server.mask:
            raise InputError(f"{options.origin_of('mask', where)}: {server.name} takes no masks")
        self._wire = wire
        self._server = server
        self.name = wire.name
        self.most_pictures = server.most_pictures
        self.mask: Literal["", "clear", "white"] = "white" if options.mask else ""
        asked = {option: getattr(options, option) for option in FIELD_OF}
        asked = {option: value for option, value in asked.items() if value not in (None, "")}
        self._fields: JsonObject = {"n": 1, "size": options.image_size or SIZE, "response_format": "b64_json"}
        self._fields |= {FIELD_OF[option]: value for option, value in asked.items() if option in server.edits}
        self._seeded = options.use_seed and "use_seed" in server.edits
        left_out = [FIELD_OF[option] for option in asked if option not in server.edits]
        left_out += ["seed"] if options.use_seed and not self._seeded else []
        stated = {
            "server": server.name,
            **self._fields,
            "seed": self._seeded,
            "mask": options.mask or None,
            "left_out": ",".join(left_out) or None,
        }
        self.sampling = " ".join(f"{name}={value}" for name, value in stated.items() if value is not None)

    async def draw(
        self, parts: Sequence[str | EncodedImage], seed: int, mask: EncodedImage | None = None
    ) -> JsonObject:
        pictures = [part for part in parts if isinstance(part, EncodedImage)]
        fields = {"model": self._wire.model, "prompt": words_of(parts), **self._fields}
        if self._seeded:
            fields["seed"] = seed % 2**31
        name = self._server.pictures if len(pictures) > 1 else self._server.picture
        files = [(name, picture) for picture in pictures]
        return await self._wire.post_form(PATH, fields, files + ([(self._server.mask, mask)] if mask else []))

    def read_picture(self, body: JsonObject) -> bytes:
        return read_picture(body)

    def read_usage(self, body: JsonObject) -> Usage:
        return read_usage(body)

    def scrub(self, body: JsonObject) -> object:
        return self._wire.scrub(body)

    async def aclose(self) -> None:
        await self._wire.aclose()
