"""Write `models/prices.csv` from the package genai-prices, and print what changed.

Rows with a source of their own are kept while genai-prices does not list their model. The package plantain reads the
table alone: a run freezes its prices, and never needs genai-prices.
"""

from __future__ import annotations

import csv
import difflib
import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version

from genai_prices.data import providers
from genai_prices.types import ModelInfo, ModelPrice, StartDateConstraint, TieredPrices

from plantain.models.registry import PRICES, known_models

PROVIDERS = {"gemini": "google", "openai": "openai"}
"""Provider here -> its id in genai-prices."""

RATES = {
    "input_per_m": "input_mtok",
    "output_per_m": "output_mtok",
    "cached_per_m": "cache_read_mtok",
    "cache_write_per_m": "cache_write_mtok",
    "image_input_per_m": "input_image_mtok",
    "cached_image_per_m": "cache_image_read_mtok",
    "image_output_per_m": "output_image_mtok",
}
"""Column -> price of genai-prices, in dollars per million tokens."""

COLUMNS = (*("model", "since", "until", *RATES, "batch_cached_per_m", "date", "source"),)
Row = dict[str, str]


@dataclass(frozen=True)
class Span:
    """One price list and the days on which it holds, ISO; "" if open."""

    since: str
    until: str
    prices: ModelPrice


def rows_of(name: str, info: ModelInfo, today: date) -> list[Row]:
    """Return the rows of a model: the price lists of today and of later days."""
    return [
        _row(name, span, info, today)
        for span in _spans(info)
        if not span.until or span.until > today.isoformat()
    ]


def _spans(info: ModelInfo) -> list[Span]:
    if isinstance(info.prices, ModelPrice):
        return [Span("", "", info.prices)]
    starts = [_start(one.constraint) for one in info.prices]
    ends = [*starts[1:], ""]
    return [Span(a, b, one.prices) for a, b, one in zip(starts, ends, info.prices, strict=True)]


def _row(name: str, span: Span, info: ModelInfo, today: date) -> Row:
    day = max(span.since, today.isoformat())
    since = span.since if span.since > today.isoformat() else ""
    row = {"model": name, "since": since, "until": span.until}
    row |= {column: _text(_base(getattr(span.prices, key))) for column, key in RATES.items()}
    batch = _variant(info, {"processing": "batch"}, day)
    if batch is not None:
        half, cached = _base(batch.input_mtok), _base(span.prices.cache_read_mtok)
        assert half == _base(span.prices.input_mtok) / 2, f"{name}: a batch is not half of the list price"  # type: ignore[operator]
        there = _base(batch.cache_read_mtok) or cached  # no price of its own: the list price holds
        if cached is not None and there != cached / 2:
            row["batch_cached_per_m"] = _text(there)
    return row


def _variant(info: ModelInfo, when: dict[str, str], day: str) -> ModelPrice | None:
    held = [(_start(one.constraint), one.prices) for one in info.price_variants or () if one.when == when]
    return max((one for one in held if one[0] <= day), key=lambda one: one[0], default=("", None))[1]


def _start(constraint: object) -> str:
    """Return the first day of a price, ISO; "" if it is open."""
    assert constraint is None or isinstance(constraint, StartDateConstraint), constraint
    return constraint.start_date.isoformat() if constraint else ""


def _base(price: Decimal | TieredPrices | None) -> Decimal | None:
    return price.base if isinstance(price, TieredPrices) else price


def _text(number: Decimal | None) -> str:
    return "" if number is None else f"{round(number, 4).normalize():f}"


def table(rows: Iterable[Row], date_read: str) -> str:
    """Return the whole file: a comment with package and day, then CSV."""
    file = io.StringIO()
    file.write(f"# genai-prices {version('genai-prices')}, unverified; read on {date_read}\n")
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def made(before: str, today: date) -> str:
    """Return the table made anew; its day changes only with its rows."""
    kept = [row for row in csv.DictReader(before.splitlines()[1:]) if row["source"]]
    listed = {provider.id: provider for provider in providers}
    rows: list[Row] = []
    for name in known_models():
        provider, _, model = name.partition("/")
        info = listed[PROVIDERS[provider]].find_model(model)
        rows += rows_of(name, info, today) if info else [row for row in kept if row["model"] == name]
    same = table(rows, before.partition("read on ")[2].partition("\n")[0])
    return same if same == before else table(rows, today.isoformat())


def main() -> int:
    """Write the table; return 0."""
    before = PRICES.read_text("utf-8") if PRICES.exists() else "\n"
    after = made(before, datetime.now(UTC).date())
    PRICES.write_text(after, encoding="utf-8")
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", n=0, lineterm="")
    print("\n".join(lines) or "no price has changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
