"""What hosted models are told: templates that a clinician can read and edit, and how they are filled in."""

from plantain.models.hosted.prompts.fill import (
    blind_prompt,
    checked_library,
    describe_prompt,
    judge_prompt,
    lines_asked,
    look_prompt,
    procedures_prompt,
    system_of,
    with_images,
    write_prompt,
)
from plantain.models.hosted.prompts.library import Prompt, PromptLibrary, prompts_folder

__all__ = [
    "Prompt",
    "PromptLibrary",
    "blind_prompt",
    "checked_library",
    "describe_prompt",
    "judge_prompt",
    "lines_asked",
    "look_prompt",
    "procedures_prompt",
    "prompts_folder",
    "system_of",
    "with_images",
    "write_prompt",
]
