"""What a model's call costs, as data; who reserves and settles is `plantain.calls`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """List price of a model in US dollars. None means that the kind of token is not billed apart.

    `Usage` counts nest: `input_tokens` includes cached and image tokens, `output_tokens` includes thinking and image
    tokens, for every provider alike. So a dearer or cheaper kind is priced first and the rest at the plain price.

    Attributes:
        input_per_m: a million input tokens.
        output_per_m: a million output tokens, thinking included.
        cached_per_m: a million input tokens that came from the provider's cache.
        image_input_per_m: a million input tokens that describe an image, where they are billed apart.
        image_output_per_m: a million output tokens that are an image.
        image_out_each: one image made, whatever its tokens; set it or `image_output_per_m`, not both.
        batch_factor: what the batch transport multiplies the price with.
        date: when the price was read, ISO; "" when unknown.
        source: where it was read.
    """

    input_per_m: float
    output_per_m: float
    cached_per_m: float | None = None
    image_input_per_m: float | None = None
    image_output_per_m: float | None = None
    image_out_each: float | None = None
    batch_factor: float = 0.5
    date: str = ""
    source: str = ""
