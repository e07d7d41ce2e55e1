"""The provider `probe`: `probe/FOLDER` judges with a probe that `plantain train probe` made."""

from __future__ import annotations

from pathlib import Path

from plantain.models.extras import require_extra
from plantain.records import InputError
from plantain.roles.options import ProviderOptions

LOCAL = True
MODELS: dict[str, tuple[str, ...]] = {}


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The judge; its weights are loaded when it is first asked.

    Raises:
        InputError: another role, torch is missing, no probe in the folder, or one whose card does not pass.
    """
    if role != "judge":
        raise InputError(f"models.{role}: {name!r} can be a judge, not a {role}")
    options.check("probe", frozenset())
    require_extra(name, "torch", "torch", "safetensors")
    from plantain.models.probe.judge import ProbeJudge

    return ProbeJudge(name, Path(name.partition("/")[2]))
