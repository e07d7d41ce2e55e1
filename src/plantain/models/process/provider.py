"""The provider `process`: models that run in an environment of their own, by the name of their worker."""

from __future__ import annotations

from plantain.models.presets import Preset, presets
from plantain.models.process.settings import Settings
from plantain.records import InputError
from plantain.records.suggestions import nearest

__all__ = ["MODELS", "Settings", "load"]

MODELS: dict[str, tuple[str, ...]] = {name: ("editor",) for name in presets() if name.startswith("process/")}


def load(name: str, role: str, options: Settings) -> object:
    """Return the editor; its program is started with the first edit.

    Raises:
        InputError: another role, or no command for the worker.
    """
    if role != "editor":
        raise InputError(f"models.{role}: {name!r} can be an editor, not a {role}")
    preset = presets().get(name, Preset(name, worker=name.partition("/")[2]))
    command = options.workers.get(preset.worker)
    if command is None:
        near = nearest(preset.worker, options.workers)
        hint = f"did you mean {near!r}? or " if near else ""
        raise InputError(
            f"{name}: no command to start it was given; {hint}write [providers.process.workers.{preset.worker}] "
            'command = ["/path/to/its/python", "worker.py"] (see docs/design/open-models.md)'
        )
    from plantain.models.process.editor import ProcessEditor

    return ProcessEditor(name, preset, command, options.side)
