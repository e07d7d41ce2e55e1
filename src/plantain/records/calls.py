"""Model calls: their keys and what they consumed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plantain.records.outcomes import Step


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call consumed and who answered. None means the provider did not say.

    The one token convention, which adapters translate into and everything else relies on:

    - `input_tokens` is all that was read: words, images, what came from a cache and what was written to one.
    - `output_tokens` is all that was written and is billed as output: words, images and thinking.
    - Every other count is a part of one of these two, never an addition to it: `cached_tokens`, `cache_write_tokens`
      and `input_image_tokens` of the input (`cached_image_tokens` of both the cached and the images),
      `thinking_tokens` and `output_image_tokens` of the output.

    Attributes:
        tier: the service tier that served the call, as the provider names it, in lower case; "" for the usual one.
        ran_on: the kind of worker that computed the answer, if one of ours did: CPU or GPU, library versions.
        asks: the usage of each request, if the call took more than one: each is billed by its own tier and length. One
            without counts was sent at an unknown cost. The counts above are their sums.
    """

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
    cached_image_tokens: int | None = None
    cache_write_tokens: int | None = None
    tier: str = ""
    ran_on: str = ""
    asks: tuple[Usage, ...] = ()

    @property
    def total_tokens(self) -> int:
        """All tokens read and written, as limits per minute count them."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def with_pictures_of(self, tokens: int | None) -> Usage:
        """Return the usage with its images counted, if the provider did not say how many tokens they are.

        Args:
            tokens: of one image of the requested size; None if unknown. A total below the tokens of the images alone
                has left them out, and they are added.
        """
        if not self.images or not tokens or self.output_image_tokens is not None:
            return self
        pictures = self.images * tokens
        reported = self.output_tokens or 0
        whole = reported if reported - (self.thinking_tokens or 0) >= pictures else reported + pictures
        return replace(self, output_tokens=whole, output_image_tokens=pictures)


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identity of a memoised call; a replay finds its answer by this key."""

    task_id: str
    generation: int
    round: int
    step: Step
    draw: int = 0
