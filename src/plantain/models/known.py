"""The table of known models, from known.toml: roles, prices with their date and source, retirements."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from plantain.records import Price


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One row of the table.

    Attributes:
        name: "provider/model".
        roles: what it can fill: writer, editor, judge.
        price: None when unknown.
        retired: date from which the provider no longer serves it, ISO; "" while it does.
        note: what a reader must know.
    """

    name: str
    roles: tuple[str, ...]
    price: Price | None = None
    retired: str = ""
    note: str = ""


@cache
def known_models() -> dict[str, KnownModel]:
    """Every known hosted model by its name, in the order of the file."""
    with Path(__file__).with_name("known.toml").open("rb") as file:
        table = tomllib.load(file)
    dated = {"date": table["price_date"], "source": table["price_source"]}
    models = (
        KnownModel(
            row["name"],
            tuple(row["roles"]),
            Price(**row["price"], **dated) if "price" in row else None,
            row.get("retired", ""),
            row.get("note", ""),
        )
        for row in table["model"]
    )
    return {model.name: model for model in models}


def price_of(name: str) -> Price | None:
    """The list price of a model; None when it is unknown. Models that run here cost nothing."""
    if name.startswith(("offline/", "diffusers/", "process/")):
        return Price(0.0, 0.0, source="runs here")
    model = known_models().get(name)
    return model.price if model else None
