"""The provider `openai`: which of its models are known, and loading one for a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plantain.files.secrets import key_from_environment
from plantain.models.extras import require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.known import roles_at
from plantain.records import InputError
from plantain.roles.options import THINKING, ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.openai.wire import OpenAITransport, OpenAIWire

KEYS = ("OPENAI_API_KEY",)
EXTRA = ("openai", "openai", "pybase64")
MODELS = roles_at("openai")
ADDRESS = "https://api.openai.com/v1"

TAKES = frozenset(
    {
        "temperature",
        "top_p",
        "thinking",
        "max_output_tokens",
        "image_size",
        "image_quality",
        "service_tier",
        "media_resolution",
        "input_fidelity",
        "mask",
        "moderation",
        "background",
        "output_format",
        "form",
    }
)

CHOICES = {
    "thinking": (*THINKING, "xhigh", "max"),
    "service_tier": ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
    "media_resolution": ("low", "high", "auto", "original"),
    "input_fidelity": ("low", "high"),
    "moderation": ("low", "auto"),
    "background": ("opaque", "auto"),
    "output_format": ("png", "jpeg", "webp"),
}
"""What the installed SDK has for them, less what is no edited picture: transparent ones, drawings, films. `moderation`
is in no type of the SDK: OpenAI's reference has it in the JSON form of an edit (schema EditImageBodyJsonParam)."""


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The model for a role; an id that we do not know is taken at its word.

    Raises:
        InputError: the extra or the key is missing, or an option is none of OpenAI's.
    """
    return role_of(_wire(name, options), role, options)


def role_of(wire: OpenAIWire, role: str, options: ProviderOptions) -> object:
    """What a model becomes in a role, online or by jobs."""
    transport = _transport(wire, role, options)
    from plantain.models.hosted.editor import HostedEditor
    from plantain.models.hosted.openai.picture_model import OpenAIPictureModel
    from plantain.models.hosted.openai.responses import ResponsesConversation
    from plantain.models.hosted.writer_and_judge import language_role

    if role == "editor":
        return HostedEditor(OpenAIPictureModel(transport, options), options)
    return language_role(role, ResponsesConversation(transport, options), options)


async def probe(name: str, options: ProviderOptions) -> tuple[bool, str]:
    """One cheap call: a word from a language model, the card of a known editor. Raises as `load` does."""
    return await probe_wire(_wire(name, options), MODELS.get(options.listed or name) == ("editor",), options)


async def probe_wire(wire: OpenAIWire, editor: bool, options: ProviderOptions) -> tuple[bool, str]:
    """The same over a connection."""
    from plantain.models.hosted.openai.responses import ResponsesConversation
    from plantain.models.hosted.probing import probe_card, probe_words

    return await (probe_card(wire) if editor else probe_words(ResponsesConversation(wire, options)))


def _transport(wire: OpenAIWire, role: str, options: ProviderOptions) -> OpenAITransport:
    """The wire itself, or jobs over it."""
    if options.jobs is None:
        return wire
    from plantain.models.hosted.batch.client import BatchClient

    assert isinstance(options.jobs, BatchClient)
    from plantain.models.hosted.openai.batch import OpenAIBatch
    from plantain.models.hosted.openai.picture_model import PATH as EDITS
    from plantain.models.hosted.openai.responses import PATH as RESPONSES

    return OpenAIBatch(wire, options.jobs, options.batch, EDITS if role == "editor" else RESPONSES)


def _wire(name: str, options: ProviderOptions) -> OpenAIWire:
    require_extra(name, *EXTRA)
    section = name.partition("/")[0]
    options.check(section, TAKES, CHOICES)
    check_size(section, options)
    key = key_from_environment(
        (options.api_key_env,) if options.api_key_env else KEYS,
        "openai",
        near=stays_in_the_house(options),
        later=options.key_later,
    )
    from plantain.models.hosted.openai.wire import OpenAIWire

    return OpenAIWire(name, key, options, options.base_url or ADDRESS)


def check_size(section: str, options: ProviderOptions) -> None:
    """Refuses a picture size that is no square. Raises InputError."""
    size = options.image_size
    if size and not _is_square(size):
        raise InputError(f'providers.{section}.image_size: {size!r} is not a square like "1024x1024"')


def _is_square(size: str) -> bool:
    width, _, height = size.partition("x")
    return width.isdigit() and width == height
