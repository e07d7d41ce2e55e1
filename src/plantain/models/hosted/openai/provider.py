"""The provider `openai`: which of its models are known, and loading one for a role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import field_validator

from plantain.files.secrets import key_from_environment
from plantain.models.extras import require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.known import roles_at
from plantain.roles.batch_rules import BatchRules
from plantain.roles.options import ForEditors, ForWords, Free, ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.openai.wire import OpenAITransport, OpenAIWire

KEYS = ("OPENAI_API_KEY",)
EXTRA = ("openai", "openai", "pybase64")
MODELS = roles_at("openai")
ADDRESS = "https://api.openai.com/v1"


class OpenAIOptions(ProviderOptions):
    """What OpenAI's models take at any address. The choices are those of the installed SDK, less what is no edited
    image: transparent ones, drawings, films.

    Attributes:
        image_quality: quality of an edited image, e.g. "high".
        service_tier: how soon and at which price it answers.
        input_fidelity: how closely an editor keeps to what it was given.
        mask: send the region where the change belongs to the editor; benchmarks know one.
        background: background of an edited image.
        output_format: file format of an edited image.
    """

    thinking: ForWords[Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]] = ""
    media_resolution: ForWords[Literal["", "low", "high", "auto", "original"]] = ""
    image_quality: ForEditors[str] = ""
    service_tier: Literal["", "auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] = ""
    input_fidelity: ForEditors[Literal["", "low", "high"]] = ""
    mask: ForEditors[bool] = False
    background: ForEditors[Literal["", "opaque", "auto"]] = ""
    output_format: ForEditors[Literal["", "png", "jpeg", "webp"]] = ""

    @field_validator("image_size")
    @classmethod
    def _is_square(cls, size: str) -> str:
        width, _, height = size.partition("x")
        if size and not (width.isdigit() and width == height):
            raise ValueError(f'{size!r} is not a square like "1024x1024"')
        return size


class Settings(OpenAIOptions):
    """`[providers.openai]`.

    Attributes:
        transport: "batch" sends calls as jobs, at half the price, within a day.
        batch: how large these jobs may become.
        moderation: how strictly an edit is checked. It is in no type of the SDK: OpenAI's reference has it in the JSON
            form of an edit (schema EditImageBodyJsonParam).
    """

    transport: Free[Literal["online", "batch"]] = "online"
    batch: Free[BatchRules] = BatchRules()
    moderation: ForEditors[Literal["", "low", "auto"]] = ""


def load(name: str, role: str, options: Settings) -> object:
    """The model for a role; an id that we do not know is taken at its word.

    Raises:
        InputError: the extra or the key is missing, or an option is none of OpenAI's.
    """
    return role_of(_wire(name, options), role, options)


def role_of(wire: OpenAIWire, role: str, options: OpenAIOptions) -> object:
    """What a model becomes in a role, online or by jobs."""
    transport = _transport(wire, role, options)
    from plantain.models.hosted.editor import HostedEditor
    from plantain.models.hosted.openai.picture_model import OpenAIPictureModel
    from plantain.models.hosted.openai.responses import ResponsesConversation
    from plantain.models.hosted.writer_and_judge import language_role

    if role == "editor":
        return HostedEditor(OpenAIPictureModel(transport, options), options)
    return language_role(role, ResponsesConversation(transport, options), options)


async def probe(name: str, options: Settings) -> tuple[bool, str]:
    """One cheap call: a word from a language model, the card of a known editor. Raises as `load` does."""
    return await probe_wire(_wire(name, options), MODELS.get(options.listed or name) == ("editor",), options)


async def probe_wire(wire: OpenAIWire, editor: bool, options: OpenAIOptions) -> tuple[bool, str]:
    """The same over a connection."""
    from plantain.models.hosted.openai.responses import ResponsesConversation
    from plantain.models.hosted.probing import probe_card, probe_words

    return await (probe_card(wire) if editor else probe_words(ResponsesConversation(wire, options)))


def _transport(wire: OpenAIWire, role: str, options: OpenAIOptions) -> OpenAITransport:
    """The wire itself, or jobs over it."""
    if options.jobs is None:
        return wire
    from plantain.models.hosted.batch.client import BatchClient

    assert isinstance(options.jobs, BatchClient) and isinstance(options, Settings)
    from plantain.models.hosted.openai.batch import OpenAIBatch
    from plantain.models.hosted.openai.picture_model import PATH as EDITS
    from plantain.models.hosted.openai.responses import PATH as RESPONSES

    return OpenAIBatch(wire, options.jobs, options.batch, EDITS if role == "editor" else RESPONSES)


def _wire(name: str, options: Settings) -> OpenAIWire:
    require_extra(name, *EXTRA)
    key = key_from_environment(
        (options.api_key_env,) if options.api_key_env else KEYS,
        "openai",
        near=stays_in_the_house(options),
        later=options.key_later,
    )
    from plantain.models.hosted.openai.wire import OpenAIWire

    return OpenAIWire(name, key, options, options.base_url or ADDRESS)
