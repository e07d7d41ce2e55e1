"""Load the model of a name, "provider/model", for a role. Only `plantain.runs` imports it.

A model that is loaded without a run's options sends no image from this machine; see `roles.options.Clearance`.
"""

from __future__ import annotations

from plantain.models.presets import presets
from plantain.models.registry import provider, provider_names, settings_class
from plantain.records import InputError
from plantain.roles.options import ProviderSettings


def load_model(name: str, role: str, options: ProviderSettings | None = None) -> object:
    """Return the model of a name for "writer", "editor", "judge" or "describer".

    Raises:
        InputError: unknown provider or model, a missing key or extra, or a setting that it does not have.
    """
    provider_name, _, model = name.partition("/")
    if not model:
        raise InputError(
            f"{_role_name(role)}: {name!r} is not provider/model; providers: {', '.join(provider_names())}"
        )
    preset = presets().get(name)
    if preset is not None and preset.model:
        raise InputError(
            f"models.{role}: {name} is a preset of `plantain bench generate`; in a recipe name {preset.model}"
        )
    kind = options.kind if options is not None and options.kind else provider_name
    try:
        module, own = provider(kind), settings_class(kind)
    except InputError as error:
        raise InputError(f"{_role_name(role)}: {name!r}: {error}") from error
    return module.load(name, role, own() if options is None else options)


def _role_name(role: str) -> str:
    """Return the field of a recipe, or the option of a command, that names the model."""
    return "--describer" if role == "describer" else f"models.{role}"
