"""Model calls: what names one and what it consumed."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.records.outcomes import Step


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call consumed and who answered. None means the provider did not say."""

    served_model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    input_image_tokens: int | None = None
    output_image_tokens: int | None = None
    images: int | None = None
    finish_reason: str = ""
    response_id: str = ""
    thought_summary: str = ""


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identity of a memoised call; a replay finds its answer by this key."""

    task_id: str
    generation: int
    round: int
    step: Step
    draw: int = 0
