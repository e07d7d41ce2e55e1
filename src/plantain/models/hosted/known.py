"""The table of known models, from known.toml: roles, prices with their days and sources, ends and successors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path

from plantain.records import Price

SOON = timedelta(days=60)
"""A model that ends within this time is warned of."""

AGED = timedelta(days=45)
"""A row that nobody has compared with its source for this long is stale."""


ALSO_SERVED = {"vertex": "gemini", "azure": "openai"}
"""Providers that serve another's models under the same ids: what is not listed for them is taken from its rows."""

SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{3}|\d\d-\d{4})\Z")
"""A dated form of another id; it costs what that one does and ends when it ends."""

USUAL_PICTURE = 1_120
"""Tokens of one picture of 1024x1024 by most models, for those that we do not know."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One row of the table.

    Attributes:
        name: "provider/model".
        roles: what it can fill: writer, editor, judge.
        prices: by their days; empty when unknown.
        retired: the day from which the provider does not serve it, ISO, past or announced; "" where none is known.
        successor: what to take instead; "" where nobody says.
        note: what a reader must know.
        checked: when the row was last compared with its sources, ISO.
        picture_tokens: tokens of one square picture that it writes, by size or quality as the recipe names it; "" for
            what it writes where the recipe says nothing.
    """

    name: str
    roles: tuple[str, ...]
    prices: tuple[Price, ...] = ()
    retired: str = ""
    successor: str = ""
    note: str = ""
    checked: str = ""
    picture_tokens: Mapping[str, int] = field(default_factory=dict)

    def price_on(self, day: date) -> Price | None:
        """The list price on a day; None when it is unknown."""
        return next((price for price in self.prices if price.holds_on(day.isoformat())), None)


@cache
def known_models() -> dict[str, KnownModel]:
    """Every known hosted model by its name, in the order of the file."""
    with Path(__file__).with_name("known.toml").open("rb") as file:
        table = tomllib.load(file)
    usual = {"date": table["price_date"], "source": table["price_source"]}
    models = (
        KnownModel(
            row["name"],
            tuple(row["roles"]),
            tuple(_price(usual | price) for price in row.get("price", ())),
            row.get("retired", ""),
            row.get("successor", ""),
            row.get("note", ""),
            row.get("checked", table["checked"]),
            row.get("picture_tokens", {}),
        )
        for row in table["model"]
    )
    return {model.name: model for model in models}


def known_model(name: str) -> KnownModel | None:
    """The row of a model; of one that a cloud serves, the row of its maker's own; of a dated form, the row of its id.

    None where there is none of them.
    """
    rows = known_models()
    provider, _, model = name.partition("/")
    maker = ALSO_SERVED.get(provider, provider)
    row = rows.get(name) or rows.get(f"{maker}/{model}") or rows.get(f"{maker}/{SNAPSHOT.sub('', model)}")
    if row is None or row.name == name:
        return row
    if maker == provider:
        return replace(row, name=name)
    prices = tuple(replace(p, source=f"{p.source}; the row of {maker}/{model}") for p in row.prices)
    successor = row.successor.replace(f"{maker}/", f"{provider}/", 1)
    return replace(row, name=name, prices=prices, successor=successor)


def roles_at(provider: str) -> dict[str, tuple[str, ...]]:
    """The models that a provider is known to serve -> the roles that each fills."""
    maker = ALSO_SERVED.get(provider, provider)
    return {
        f"{provider}/{name.partition('/')[2]}": model.roles
        for name, model in known_models().items()
        if name.startswith(f"{maker}/")
    }


def _price(row: dict[str, object]) -> Price:
    tiers = row.pop("tiers", {})
    assert isinstance(tiers, dict)
    return Price(**row, tiers=tuple(tiers.items()))  # type: ignore[arg-type]  # the table is ours, and tested


def today() -> date:
    """The day by which prices and ends are looked up (UTC)."""
    return datetime.now(UTC).date()


def price_of(name: str, day: date | None = None) -> Price | None:
    """The list price of a model on a day, by default today; None when it is unknown. What runs here costs nothing."""
    if name.startswith(("offline/", "diffusers/", "process/")):
        return Price(0.0, 0.0, source="runs here")
    model = known_model(name)
    return model.price_on(day or today()) if model else None


def picture_tokens(name: str, size: str, quality: str = "") -> int | None:
    """Tokens of one square picture by a model, at the size or quality that a recipe or an answer names.

    Gemini's go by size ("2K"); OpenAI's by quality and area, stated for 1024x1024. None where model, size or quality is
    unknown, or the provider is left to choose.
    """
    table = _picture_table(name)
    if not name.startswith(("openai/", "azure/")):
        return table.get(size)
    sides = size.split("x")
    area = int(sides[0]) * int(sides[-1]) / 1024**2 if all(side.isdecimal() for side in sides) else 1.0
    return round(table[quality] * area) if quality in table else None


def _picture_table(name: str) -> Mapping[str, int]:
    model = known_model(name)
    return model.picture_tokens if model else {}


def picture_range(name: str, size: str, quality: str) -> tuple[int, int, int]:
    """The same as a range, low to high: all one where the recipe says enough, else what the provider may choose."""
    known = picture_tokens(name, size, quality)
    if known is not None:
        return known, known, known
    table = _picture_table(name)
    choices = sorted(picture_tokens(name, size, quality) or tokens for quality, tokens in table.items())
    if not choices:
        return (USUAL_PICTURE,) * 3
    return choices[0], choices[len(choices) // 2], choices[-1]


def endings(names: Iterable[str], day: date | None = None) -> list[str]:
    """What a person should know of chosen models that have ended or end soon, one line each."""
    now = day or today()
    lines = []
    for name in dict.fromkeys(names):
        model = known_model(name)
        if model is None or not model.retired:
            continue
        end = date.fromisoformat(model.retired)
        if end - now > SOON:
            continue
        when = (
            f"has ended on {end}"
            if end <= now
            else f"ends on {end}, in {(end - now).days} days: a run that is not "
            "done by then cannot go on with it"
        )
        maker = ALSO_SERVED.get(name.partition("/")[0])
        if maker and name not in known_models():
            when = f"may end soon: {maker} itself ends it on {end}, and whoever else serves it has dates of its own"
        instead = f"; {model.successor} is what follows it" if model.successor else ""
        lines.append(f"{name} {when}{instead}")
    return lines


def stale(day: date | None = None) -> list[str]:
    """What has aged in the table, one line each: rows not compared for long, prices that change, models that end."""
    now = day or today()
    lines = []
    for model in known_models().values():
        checked = date.fromisoformat(model.checked)
        if now - checked > AGED:
            lines.append(
                f"{model.name}: compared with its sources on {checked}, {(now - checked).days} days ago"
            )
        if model.prices and model.price_on(now) is None:
            lines.append(f"{model.name}: no price holds today")
        coming = [p.since for p in model.prices if now.isoformat() < p.since <= (now + SOON).isoformat()]
        lines += [f"{model.name}: another price from {since} on" for since in coming]
        read = [date.fromisoformat(p.date) for p in model.prices if now - date.fromisoformat(p.date) > AGED]
        lines += [f"{model.name}: price read on {day_read}" for day_read in dict.fromkeys(read)]
    return lines + endings(known_models(), now)
