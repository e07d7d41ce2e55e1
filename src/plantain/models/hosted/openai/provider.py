"""The provider `openai`: which of its models are known, and loading one for a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plantain.files.secrets import key_from_environment
from plantain.models.extras import require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.known import known_models
from plantain.records import InputError
from plantain.roles.options import ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.openai.wire import OpenAITransport, OpenAIWire

KEYS = ("OPENAI_API_KEY",)
EXTRA = ("openai", "openai", "pybase64")
MODELS = {name: model.roles for name, model in known_models().items() if name.startswith("openai/")}
ADDRESS = "https://api.openai.com/v1"

TAKES = frozenset(
    {"temperature", "top_p", "thinking", "max_output_tokens", "image_size", "image_quality", "form"}
)


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The model for a role; an id that we do not know is taken at its word.

    Raises:
        InputError: the extra or the key is missing, or an option is none of OpenAI's.
    """
    wire = _transport(_wire(name, options), role, options)
    from plantain.models.hosted.editor import HostedEditor
    from plantain.models.hosted.openai.picture_model import OpenAIPictureModel
    from plantain.models.hosted.openai.responses import ResponsesConversation
    from plantain.models.hosted.writer_and_judge import language_role

    if role == "editor":
        return HostedEditor(OpenAIPictureModel(wire, options), options)
    conversation = ResponsesConversation(wire, options)
    return language_role(role, conversation, options)


async def probe(name: str, options: ProviderOptions) -> tuple[bool, str]:
    """One cheap call: a word from a language model, the card of a known editor. Raises as `load` does."""
    wire = _wire(name, options)
    from plantain.models.hosted.openai.responses import ResponsesConversation
    from plantain.models.hosted.probing import probe_card, probe_words

    if MODELS.get(name) == ("editor",):
        return await probe_card(wire)
    return await probe_words(ResponsesConversation(wire, options))


async def seen(options: ProviderOptions) -> list[str]:
    """Ids of the models that the key can see. Raises Fault where the provider does not say, and as `load` does."""
    wire = _wire("openai/…", options)
    try:
        return await wire.list_models()
    finally:
        await wire.aclose()


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
    options.check("openai", TAKES)
    if options.image_size and not _is_square(options.image_size):
        raise InputError(f'providers.openai.image_size: {options.image_size!r} is no square like "1024x1024"')
    key = key_from_environment(
        (options.api_key_env,) if options.api_key_env else KEYS,
        "openai",
        near=stays_in_the_house(options),
        later=options.key_later,
    )
    from plantain.models.hosted.openai.wire import OpenAIWire

    return OpenAIWire(name, key, options, options.base_url or ADDRESS)


def _is_square(size: str) -> bool:
    width, _, height = size.partition("x")
    return width.isdigit() and width == height
