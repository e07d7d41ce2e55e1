"""What stands at an address: is there a server, of which kind, with which models, and which roles can they fill?"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from plantain.models.hosted.asking import Question
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.openai.chat import ChatConversation
from plantain.models.hosted.openai.compatible import Settings
from plantain.models.hosted.openai.endpoints import Endpoints, version_of
from plantain.models.hosted.openai.served_editor import ServedPictureModel
from plantain.models.hosted.openai.servers import ServerProfile, servers
from plantain.models.hosted.openai.wire import OpenAIWire
from plantain.models.hosted.scrub import objects, text
from plantain.pixels.decode import declared_size
from plantain.pixels.encode import encode_png
from plantain.roles import EncodedImage

DRAWS = re.compile(r"image|edit|flux|klein|kontext|diffusion", re.IGNORECASE)
"""Names of models that are asked for a picture first."""

WORDS = "Answer with the word ready."
SIDE = 256
"""Pixels of the one picture that is sent: of our own making, nobody's."""

BILLED_TOKENS = 512


@dataclass(frozen=True, slots=True)
class ProbedAddress:
    """One address.

    Attributes:
        address: where.
        there: something answered.
        models: ids, as the server lists them.
        roles: what its first model can fill, as far as one call shows.
        server: its kind and version; "" where it does not say.
        answer: what the cheap call came to, or why there was no answer.
    """

    address: str
    there: bool
    models: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    server: str = ""
    answer: str = ""


async def survey(wire: OpenAIWire, model: str, options: Settings, server: ServerProfile) -> ProbedAddress:
    """Looks at one address: its list of models and its version, which are free, and one cheap call.

    Args:
        wire: the connection; closed here.
        model: the id to call; "" for the first that is listed.
        options: how it is asked.
        server: which kind it is said to be.
    """
    try:
        try:
            listed = await wire.get("/models")
        except Fault as fault:
            if not fault.status or fault.status in (401, 403) or fault.status >= 500:
                return ProbedAddress(wire.address, bool(fault.status), answer=fault.outcome.reason)
            listed = {}
        ids = tuple(filter(None, (text(one, "id") for one in objects(listed.get("data"))))) or tuple(
            filter(None, (text(listed, "model_path"),))
        )
        kind = await _kind(wire, options, server)
        wire.model = model or (ids[0] if ids else "default")
        if model and ids and model not in ids:
            return ProbedAddress(wire.address, True, ids, (), kind, f"there is no {model!r} at this address")
        roles, answered = await _roles(wire, options, server)
        return ProbedAddress(wire.address, True, ids, roles, kind, answered)
    finally:
        await wire.aclose()


async def _kind(wire: OpenAIWire, options: Settings, server: ServerProfile) -> str:
    """The kind that the recipe states with its version; where it states none, the first kind that tells one."""
    if options.server:
        return " ".join(filter(None, (server.name, await _version(wire, server))))
    for guess in servers().values():
        version = await _version(wire, guess)
        if version:
            return f'{guess.name} {version} (say server = "{guess.name}")'
    return ""


async def _version(wire: OpenAIWire, server: ServerProfile) -> str:
    try:
        return await version_of(wire, server)
    except Fault:
        return ""


async def _roles(wire: OpenAIWire, options: Settings, server: ServerProfile) -> tuple[tuple[str, ...], str]:
    """What one call shows: of words and a picture, or of an edit; the likelier is tried first."""
    cheap = options.but(max_output_tokens=min(options.max_output_tokens, BILLED_TOKENS), mask=False)
    endpoints = Endpoints([wire], server, named=False)
    picture = EncodedImage(encode_png(np.full((SIDE, SIDE, 3), 127, np.uint8)), "image/png")

    async def words() -> tuple[tuple[str, ...], str]:
        chat = ChatConversation(endpoints, cheap, server)
        heard = await chat.ask(Question("", (picture, WORDS), seed=0))
        if heard.outcome.ok:
            return ("writer", "judge"), heard.problem or heard.text.strip()[:60]
        plain = await chat.ask(Question("", (WORDS,), seed=0))
        if not plain.outcome.ok:
            return (), plain.outcome.reason
        return (), f"answers in words, and not to a picture: {heard.outcome.reason}"

    async def edit() -> tuple[tuple[str, ...], str]:
        if not server.edits:
            return (), f"{server.name} makes no edits"
        small = cheap.but(steps=1, image_size=f"{SIDE}x{SIDE}")
        try:
            body = await ServedPictureModel(endpoints, small, server).draw((picture, "Change nothing."), 0)
            width, height = declared_size(ServedPictureModel(endpoints, small, server).read_picture(body))
        except Fault as fault:
            return (), fault.outcome.reason
        return ("editor",), f"a picture of {width}x{height}"

    asks: list[Callable[[], Awaitable[tuple[tuple[str, ...], str]]]] = [words, edit]
    if DRAWS.search(wire.model):
        asks.reverse()
    first = await asks[0]()
    if first[0]:
        return first
    second = await asks[1]()
    return second if second[0] else first
