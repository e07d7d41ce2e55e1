"""The provider `gemini`: which of its models are known, and loading one for a role."""

from __future__ import annotations

from plantain.models.extras import require_extra
from plantain.models.known import known_models
from plantain.models.options import ProviderOptions
from plantain.models.secrets import key_from_environment

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
EXTRA = ("gemini", "google.genai")
MODELS = {name: model.roles for name, model in known_models().items() if name.startswith("gemini/")}

TAKES = frozenset(
    {
        "temperature",
        "top_p",
        "use_seed",
        "thinking",
        "thinking_budget",
        "max_output_tokens",
        "safety",
        "image_size",
    }
)


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The model for a role; an id that we do not know is taken at its word.

    Raises:
        InputError: the extra or the key is missing, or an option is none of Gemini's.
    """
    require_extra(name, *EXTRA)
    options.check("gemini", TAKES)
    key = key_from_environment((options.api_key_env,) if options.api_key_env else KEYS, "gemini")
    from plantain.models.gemini.conversation import GeminiConversation
    from plantain.models.gemini.editor import GeminiEditor
    from plantain.models.gemini.wire import GeminiWire
    from plantain.models.hosted import HostedJudge, HostedWriter

    wire = GeminiWire(name, key, options)
    if role == "editor":
        return GeminiEditor(wire, options)
    conversation = GeminiConversation(wire, options)
    return HostedWriter(conversation, options) if role == "writer" else HostedJudge(conversation, options)
