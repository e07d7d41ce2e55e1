"""The provider `process`: editors and judges that run in an environment of their own, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field

from plantain.models.registry import Preset, presets
from plantain.records import InputError
from plantain.records.messages import nearest
from plantain.roles.options import Free, ProviderSettings, Section


class WorkerCommand(Section):
    """The command of the worker `process/NAME`; the contract is in docs/design/open-models.md.

    Attributes:
        command: program and arguments; the program is usually another environment's Python.
        folder: its working directory; unset for the current one, which Python then does not import from.
        timeout_s: maximum seconds for one request, including the loading of weights.
        settings: settings passed to the worker unchanged.
        environment: names of variables with keys that are passed to it; other variables with keys are removed.
    """

    command: tuple[str, ...] = Field(min_length=1)
    folder: Path | None = None
    timeout_s: float = Field(default=1800.0, gt=0.0, le=86_400.0)
    settings: Mapping[str, str | int | float | bool] = Field(default_factory=dict)
    environment: tuple[str, ...] = ()


class Settings(ProviderSettings):
    """The settings in `[providers.process]`.

    Attributes:
        workers: how to start the models of `process/NAME`, by name.
        side: side in pixels of the canvas on which edits are made; unset for the model's default.
    """

    workers: Free[Mapping[str, WorkerCommand]] = Field(default_factory=dict)
    side: int | None = Field(default=None, ge=32, le=4096)

    def relative_to(self, folder: Path) -> Self:
        placed = {
            name: worker.model_copy(update={"folder": folder / worker.folder}) if worker.folder else worker
            for name, worker in self.workers.items()
        }
        return self.but(workers=placed)


MODELS: dict[str, tuple[str, ...]] = {name: ("editor",) for name in presets() if name.startswith("process/")}


def load(name: str, role: str, options: Settings) -> object:
    """Return the editor or judge; its program is started with the first request.

    Raises:
        InputError: the model cannot have this role (presets are editors only), or its worker has no command.
    """
    roles = MODELS.get(name, ("editor", "judge"))
    if role not in roles:
        raise InputError(f"models.{role}: {name!r} can be an {' or a '.join(roles)}, not a {role}")
    preset = presets().get(name, Preset(name, worker=name.partition("/")[2]))
    command = options.workers.get(preset.worker)
    if command is None:
        near = nearest(preset.worker, options.workers)
        hint = f"did you mean {near!r}? or " if near else ""
        raise InputError(
            f"{name}: no command to start it was given; {hint}write [providers.process.workers.{preset.worker}] "
            'command = ["/path/to/its/python", "worker.py"] (see docs/design/open-models.md)'
        )
    if role == "judge":
        from plantain.models.process.judge import ProcessJudge

        return ProcessJudge(name, command)
    from plantain.models.process.editor import ProcessEditor

    return ProcessEditor(name, preset, command, options.side)
