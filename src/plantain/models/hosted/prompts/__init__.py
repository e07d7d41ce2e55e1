"""What hosted models are told: templates that a clinician can read and edit, and how they are filled in."""

from plantain.models.hosted.prompts.fill import (
    blind_prompt,
    checked_library,
    describe_prompt,
    form_asked,
    judge_prompt,
    look_prompt,
    procedures_prompt,
    system_of,
    write_prompt,
)
from plantain.models.hosted.prompts.library import Prompt, PromptLibrary

__all__ = [
    "Prompt",
    "PromptLibrary",
    "blind_prompt",
    "checked_library",
    "describe_prompt",
    "form_asked",
    "judge_prompt",
    "look_prompt",
    "procedures_prompt",
    "system_of",
    "write_prompt",
]
