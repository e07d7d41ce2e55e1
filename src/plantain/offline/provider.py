"""The offline provider: three models that run on this machine without a key."""

from __future__ import annotations

from plantain.records import InputError
from plantain.records.messages import suggest
from plantain.roles.options import ProviderSettings as Settings

__all__ = ["MODELS", "Settings", "load"]

MODELS: dict[str, tuple[str, ...]] = {
    "offline/templates": ("writer",),
    "offline/procedural": ("editor",),
    "offline/instruments": ("judge",),
}


def load(name: str, role: str, options: Settings | None = None) -> object:
    """Return the offline model of this name for a role; it has no options.

    Raises:
        InputError: the model is unknown, or does not fill that role.
    """
    where = f"models.{role}"
    if name not in MODELS:
        raise InputError(f"{where}: no model {name!r}; {suggest(name, MODELS, cutoff=0.3)}")
    if role not in MODELS[name]:
        raise InputError(f"{where}: {name!r} can be {' and '.join(MODELS[name])}, not {role}")
    if role == "writer":
        from plantain.offline.writer import TemplateWriter

        return TemplateWriter()
    if role == "editor":
        from plantain.offline.editor import ProceduralEditor

        return ProceduralEditor()
    from plantain.offline.judge import InstrumentJudge

    return InstrumentJudge()
