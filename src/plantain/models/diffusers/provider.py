"""The provider `diffusers`: its presets, and loading one of them, a hub id or a folder as an editor."""

from __future__ import annotations

from plantain.files.installed import require_extra
from plantain.models.diffusers.settings import Settings
from plantain.models.presets import presets
from plantain.records import InputError

__all__ = ["MODELS", "Settings", "load"]

EXTRA = ("torch", "diffusers")
MODELS: dict[str, tuple[str, ...]] = {
    name: ("editor",) for name in presets() if name.startswith("diffusers/")
}


def load(name: str, role: str, options: Settings) -> object:
    """Return the editor; its weights are located now and loaded at the first edit.

    Raises:
        InputError: another role, the extra is missing, or `plan_editor` refuses.
    """
    if role != "editor":
        raise InputError(f"models.{role}: {name!r} can be an editor, not a {role}")
    require_extra(name, *EXTRA)
    from plantain.models.diffusers.editor import DiffusersEditor
    from plantain.models.diffusers.plan import plan_editor

    return DiffusersEditor(plan_editor(name, options))
