"""Load the model of a name, "provider/model", for a role. Only `plantain.runs` imports it.

A model that is loaded without a run's options sends no image from this machine; see `roles.options.Clearance`.
"""

from __future__ import annotations

from plantain.models.presets import presets
from plantain.models.registry import check_name, provider, settings_class
from plantain.records import InputError
from plantain.roles.options import ProviderSettings


def load_model(name: str, role: str, options: ProviderSettings | None = None) -> object:
    """Return the model of a name for "writer", "editor", "judge" or "describer".

    Raises:
        InputError: unknown provider or model, a missing key or extra, or a setting that it does not have.
    """
    kind = options.kind if options is not None and options.kind else name.partition("/")[0]
    check_name(name, kind, _role_name(role))
    preset = presets().get(name)
    if preset is not None and preset.model:
        raise InputError(
            f"models.{role}: {name} is a preset of `plantain bench generate`; in a recipe name {preset.model}"
        )
    return provider(kind).load(name, role, settings_class(kind)() if options is None else options)


def _role_name(role: str) -> str:
    """Return the field of a recipe, or the option of a command, that names the model."""
    return "--describer" if role == "describer" else f"models.{role}"
