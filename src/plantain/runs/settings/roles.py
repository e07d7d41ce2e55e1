"""What a recipe or settings file may say of a role in `[settings.ROLE]`: how its model is asked, whosever it is."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from plantain.journal import JsonValue
from plantain.records import InputError

Role = Literal["writer", "editor", "judge", "describer"]
"""The sections that there can be."""

OPTION_OF = {"effort": "thinking", "size": "image_size", "quality": "image_quality"}
"""Settings that have another name at a provider -> the name of the option."""

EDITORS = frozenset(
    {
        "quality",
        "input_fidelity",
        "mask",
        "moderation",
        "background",
        "output_format",
        "steps",
        "guidance",
        "image_guidance",
        "true_cfg_scale",
        "negative_prompt",
    }
)
JUDGES = frozenset({"leniency", "form"})
READERS = frozenset({"effort", "thinking_budget", "media_resolution"})
"""Settings of an editor alone, of a judge, and of those that answer in words."""

_SIDE = re.compile(r"(\d{2,5})(?:x(\d{2,5}))?")


class RoleSection(BaseModel):
    """One role's settings; each replaces what its model's provider says of the same. Frozen in a run.

    The fields are described at `plantain.roles.options.ProviderOptions`. `effort` is what a provider calls `thinking`.
    `size` is of the pictures: for an editor those that it makes, in the provider's words; for the others those that
    they are shown, whose longer side it is in pixels.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = 1.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    use_seed: bool = True
    effort: str = ""
    thinking_budget: Annotated[int, Field(ge=-1)] = 0
    max_output_tokens: Annotated[int, Field(ge=1)] = 8192
    size: str | Annotated[int, Field(ge=64, le=16_384)] = ""
    quality: str = ""
    leniency: str = "balanced"
    form: str = "plain"
    safety: str = ""
    service_tier: str = ""
    media_resolution: str = ""
    input_fidelity: str = ""
    mask: bool = False
    moderation: str = ""
    background: str = ""
    output_format: str = ""
    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    guidance: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.0
    image_guidance: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.0
    true_cfg_scale: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.0
    negative_prompt: str = ""

    def stated(self) -> dict[str, JsonValue]:
        """What is stated, as it is frozen."""
        return self.model_dump(mode="json", exclude_unset=True)

    def options(self, role: str) -> dict[str, object]:
        """The same by the names of options, with where each was said.

        Raises:
            InputError: a setting of another role, or a size that is none.
        """
        found: dict[str, object] = {}
        origin: dict[str, str] = {}
        for name, value in self.stated().items():
            if name in (READERS if role == "editor" else EDITORS) or (name in JUDGES and role != "judge"):
                fit = "judge" if name in JUDGES else "writers or judge" if role == "editor" else "editor"
                raise InputError(f"settings.{role}.{name}: is a setting of {fit}s, and of no {role}")
            option = OPTION_OF.get(name, name)
            if name == "size":
                option, value = (
                    ("image_size", str(value)) if role == "editor" else ("shown_side", _side(role, value))
                )
            found[option] = value
            origin[option] = f"settings.{role}.{name}"
        return {**found, "origin": origin} if found else {}


def _side(role: str, size: JsonValue) -> int:
    """Pixels of the longer side, of 768, "768" or "768x768"."""
    parts = _SIDE.fullmatch(str(size))
    if parts is None or int(parts[1]) < 64:
        raise InputError(
            f"settings.{role}.size: {size!r}; say the longer side in pixels of the pictures that the {role} is shown, "
            "e.g. 768 (64 at least)"
        )
    return max(int(parts[1]), int(parts[2] or 0))
