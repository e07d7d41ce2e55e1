"""Known models: roles, shutdown dates and image tokens from known.toml, prices from prices.csv."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path

from plantain.records import Price

SOON = timedelta(days=60)
"""Time before a model's end at which a run warns."""

PRICES = Path(__file__).with_name("prices.csv")
ROLES = {"language": ("writer", "judge"), "editors": ("editor",)}

ALSO_SERVED = {"vertex": "gemini", "azure": "openai"}
"""Clouds that serve another provider's models under the same ids."""

TIERS = {"gemini": {"flex": 0.5}, "openai": {}}
"""Factors of service tiers that hold for all models of a provider."""

REGIONAL_FACTOR = 1.1

SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{3}|\d\d-\d{4})\Z")
"""The end of a dated form of another id; it costs the same and ends on the same day."""

USUAL_IMAGE_TOKENS = 1_120
"""Tokens of one image of 1024x1024 by most models."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model.

    Attributes:
        name: "provider/model".
        roles: writer, editor, judge.
        prices: by their days; empty if unknown.
        retired: first day on which the provider does not serve it, ISO; "" if unknown.
        successor: model to use instead; "" if unknown.
        note: for a reader.
        image_tokens: tokens of one square output image, by `image_size` or `image_quality`; "" if unset.
    """

    name: str
    roles: tuple[str, ...]
    prices: tuple[Price, ...] = ()
    retired: str = ""
    successor: str = ""
    note: str = ""
    image_tokens: Mapping[str, int] = field(default_factory=dict)

    def price_on(self, day: date) -> Price | None:
        """Return the list price on a day; None if unknown."""
        return next((price for price in self.prices if price.holds_on(day.isoformat())), None)


@cache
def known_models() -> dict[str, KnownModel]:
    """Return every known hosted model by its name, in the order of the file."""
    with Path(__file__).with_name("known.toml").open("rb") as file:
        providers = tomllib.load(file)
    listed = _prices()
    found: dict[str, KnownModel] = {}
    for provider, kinds in providers.items():
        for kind, models in kinds.items():
            for model, row in models.items():
                name = f"{provider}/{model}"
                factor = REGIONAL_FACTOR if row.pop("regional", False) else 1.0
                tiers = TIERS[provider] | row.pop("tiers", {})
                prices = tuple(
                    replace(price, regional_factor=factor, tiers=tuple((tiers | dict(price.tiers)).items()))
                    for price in listed.get(name, ())
                )
                successor = f"{provider}/{row.pop('successor')}" if "successor" in row else ""
                found[name] = KnownModel(name, ROLES[kind], prices, successor=successor, **row)
    return found


def _prices() -> dict[str, list[Price]]:
    """Read prices.csv: a comment with source and day, then one price list of one model in each row."""
    first, *rows = PRICES.read_text("utf-8").splitlines()
    source, _, day = first.removeprefix("# ").partition("; read on ")
    found: dict[str, list[Price]] = {}
    for row in csv.DictReader(rows):
        name = row.pop("model")
        tiers = tuple((tier, float(value)) for tier in ("flex", "priority") if (value := row.pop(tier)))
        texts = {key: row.pop(key) for key in ("since", "until", "date", "source")}
        long_input = row.pop("long_input")
        rates = {key: float(value) for key, value in row.items() if value}
        price = Price(
            **rates,
            long_input=int(long_input) if long_input else None,
            tiers=tiers,
            since=texts["since"],
            until=texts["until"],
            date=texts["date"] or day,
            source=texts["source"] or source,
        )
        found.setdefault(name, []).append(price)
    return found


def known_model(name: str) -> KnownModel | None:
    """Return the row of a model; None if there is none.

    A model that a cloud serves has its maker's row, a dated form the row of its id.
    """
    rows = known_models()
    provider, _, model = name.partition("/")
    maker = ALSO_SERVED.get(provider, provider)
    row = rows.get(name) or rows.get(f"{maker}/{model}") or rows.get(f"{maker}/{SNAPSHOT.sub('', model)}")
    if row is None or row.name == name:
        return row
    if maker == provider:
        return replace(row, name=name)
    prices = tuple(
        replace(price, source=f"{price.source}; the row of {maker}/{model}") for price in row.prices
    )
    successor = row.successor.replace(f"{maker}/", f"{provider}/", 1)
    return replace(row, name=name, prices=prices, successor=successor)


def roles_at(provider: str) -> dict[str, tuple[str, ...]]:
    """Return the models that a provider is known to serve -> the roles that each fills."""
    maker = ALSO_SERVED.get(provider, provider)
    return {
        f"{provider}/{name.partition('/')[2]}": model.roles
        for name, model in known_models().items()
        if name.startswith(f"{maker}/")
    }


def today() -> date:
    """Return the day by which prices and ends are looked up (UTC)."""
    return datetime.now(UTC).date()


def price_of(name: str, day: date | None = None) -> Price | None:
    """Return the list price of a model on a day, by default today; None if unknown. Local models cost nothing."""
    if name.startswith(("offline/", "diffusers/", "process/")):
        return Price(0.0, 0.0, source="runs here")
    model = known_model(name)
    return model.price_on(day or today()) if model else None


def image_tokens(name: str, size: str, quality: str = "") -> int | None:
    """Return the tokens of one square image by a model; None if model, size or quality is unknown or left open.

    Gemini's go by size ("2K"); OpenAI's by quality and area, stated for 1024x1024.
    """
    table = _image_table(name)
    if not name.startswith(("openai/", "azure/")):
        return table.get(size)
    sides = size.split("x")
    area = int(sides[0]) * int(sides[-1]) / 1024**2 if all(side.isdecimal() for side in sides) else 1.0
    return round(table[quality] * area) if quality in table else None


def _image_table(name: str) -> Mapping[str, int]:
    model = known_model(name)
    return model.image_tokens if model else {}


def image_token_range(name: str, size: str, quality: str) -> tuple[int, int, int]:
    """Return the least, usual and most tokens of an image that the provider may write for these settings."""
    known = image_tokens(name, size, quality)
    if known is not None:
        return known, known, known
    table = _image_table(name)
    choices = sorted(image_tokens(name, size, quality) or tokens for quality, tokens in table.items())
    if not choices:
        return (USUAL_IMAGE_TOKENS,) * 3
    return choices[0], choices[len(choices) // 2], choices[-1]


def endings(names: Iterable[str], day: date | None = None) -> list[str]:
    """Return one line for each of these models that has ended or ends within 60 days."""
    now = day or today()
    lines = []
    for name in dict.fromkeys(names):
        model = known_model(name)
        if model is None or not model.retired:
            continue
        end = date.fromisoformat(model.retired)
        if end - now > SOON:
            continue
        maker = ALSO_SERVED.get(name.partition("/")[0])
        if maker and name not in known_models():
            when = f"may end soon: {maker} ends it on {end}, other providers have dates of their own"
        elif end <= now:
            when = f"has ended on {end}"
        else:
            when = f"ends on {end}, in {(end - now).days} days: a run must be complete by then"
        lines.append(f"{name} {when}{f'; its successor is {model.successor}' if model.successor else ''}")
    return lines
