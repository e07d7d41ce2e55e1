"""What a model costs: list prices as data, and what a call's usage comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

from plantain.records.calls import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """List prices of one model, in US dollars. None means that the provider does not charge that way.

    Attributes:
        input_per_m, output_per_m: per million tokens read and written; thinking is billed as output.
        cached_per_m: per million tokens read from the provider's cache; as input where None.
        image_input_per_m: per million image tokens read; as input where None.
        image_output_per_m: per million image tokens written.
        image_out_each: per image written, where images have a price of their own.
        date, source: when and where the price was read.
    """

    input_per_m: float = 0.0
    output_per_m: float = 0.0
    cached_per_m: float | None = None
    image_input_per_m: float | None = None
    image_output_per_m: float | None = None
    image_out_each: float | None = None
    date: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    def cost(self, usage: Usage) -> float | None:
        """Dollars for what a call consumed; None where the usage leaves open what was billed.

        `output_tokens` are all tokens written but thinking; `input_tokens` are all tokens read. Image tokens are part
        of both where the provider counts them apart. An image with a price of its own is not billed by its tokens as
        well.
        """
        if usage.input_tokens is None and usage.output_tokens is None and not usage.images:
            return None
        return self._read(usage) + self._written(usage)

    def _read(self, usage: Usage) -> float:
        cached = min(usage.cached_tokens or 0, usage.input_tokens or 0)
        images = min(usage.input_image_tokens or 0, (usage.input_tokens or 0) - cached)
        text = (usage.input_tokens or 0) - cached - images
        cached_rate = self.input_per_m if self.cached_per_m is None else self.cached_per_m
        image_rate = self.input_per_m if self.image_input_per_m is None else self.image_input_per_m
        return (text * self.input_per_m + cached * cached_rate + images * image_rate) / 1e6

    def _written(self, usage: Usage) -> float:
        images = min(usage.output_image_tokens or 0, usage.output_tokens or 0)
        text = (usage.output_tokens or 0) - images + (usage.thinking_tokens or 0)
        dollars = text * self.output_per_m / 1e6
        if self.image_out_each is not None:
            return dollars + (usage.images or 0) * self.image_out_each
        image_rate = self.output_per_m if self.image_output_per_m is None else self.image_output_per_m
        return dollars + images * image_rate / 1e6

    def times(self, factor: float) -> Price:
        """The same price list at another level, e.g. half of it for a batch."""

        def scaled(rate: float | None) -> float | None:
            return None if rate is None else rate * factor

        return Price(
            self.input_per_m * factor,
            self.output_per_m * factor,
            scaled(self.cached_per_m),
            scaled(self.image_input_per_m),
            scaled(self.image_output_per_m),
            scaled(self.image_out_each),
            self.date,
            self.source,
        )


FREE = Price(source="runs on this machine")
