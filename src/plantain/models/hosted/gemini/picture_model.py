"""Gemini as an image model: a picture and words in, one picture out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.gemini.provider import GeminiOptions
from plantain.models.hosted.gemini.replies import read_picture, read_usage
from plantain.models.hosted.gemini.requests import PICTURE_SAMPLING, contents, picture_config
from plantain.models.hosted.gemini.wire import GeminiTransport
from plantain.models.hosted.known import picture_tokens
from plantain.records import Usage
from plantain.roles import EncodedImage

MOST_PICTURES = 14
"""Pictures that one request to a Gemini image model may hold, by its page."""


class GeminiPictureModel:
    """Draws with one Gemini image model."""

    most_pictures = MOST_PICTURES
    mask: Literal["", "clear", "white"] = ""

    def __init__(self, wire: GeminiTransport, options: GeminiOptions) -> None:
        self._wire = wire
        self._options = options
        self.name = wire.name
        self.sampling = options.sampling(*PICTURE_SAMPLING)

    async def draw(
        self, parts: Sequence[str | EncodedImage], seed: int, mask: EncodedImage | None = None
    ) -> JsonObject:
        return await self._wire.generate(contents(parts), picture_config(seed, self._options))

    def read_picture(self, body: JsonObject) -> bytes:
        return read_picture(body)

    def read_usage(self, body: JsonObject) -> Usage:
        """Tokens; where the answer does not break them down, its pictures are counted by the size asked for."""
        return read_usage(body).with_pictures_of(
            picture_tokens(self._options.listed or self.name, self._options.image_size)
        )

    def scrub(self, body: JsonObject) -> object:
        return self._wire.scrub(body)

    async def aclose(self) -> None:
        await self._wire.aclose()
