"""`plantain models`: providers and models, what each can do and costs, and whether its key and package are there."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from plantain.models.extras import has_module
from plantain.models.known import KnownModel, known_models, price_of
from plantain.models.options import ProviderOptions
from plantain.models.registry import provider, provider_names
from plantain.records import InputError, Price

app = typer.Typer(add_completion=False)


@app.command()
def models(
    probe: Annotated[str, typer.Option(metavar="NAME", help="make one cheap call to this model")] = "",
    base_url: Annotated[str, typer.Option(help="address for --probe, e.g. http://127.0.0.1:8000/v1")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Known models: roles, price with its date, key found or not. Other ids of the providers work as well.

    Example: plantain models --probe gemini/gemini-3.8-flash
    """
    if probe:
        return _probe(probe, base_url, as_json)
    rows = model_rows()
    if as_json:
        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(rows)
    return 0


def model_rows() -> list[dict[str, object]]:
    """Every model known by name, by provider; of providers that take any id, one row "provider/…"."""
    rows: list[dict[str, object]] = []
    for name in provider_names():
        try:
            module = provider(name)
        except InputError as error:
            rows.append(_row(f"{name}/…", (), "", "", str(error)))
            continue
        key, extra = _key(getattr(module, "KEYS", ())), _extra(getattr(module, "EXTRA", None))
        if name == "openai-compatible":
            key = f"{key} (optional)"
        known = dict(module.MODELS) or {f"{name}/…": ("writer", "judge")}
        rows += [_row(model, roles, key, extra, "") for model, roles in known.items()]
    return rows


def _row(name: str, roles: tuple[str, ...], key: str, extra: str, fault: str) -> dict[str, object]:
    known, price = known_models().get(name, KnownModel(name, roles)), price_of(name)
    return {
        "name": name,
        "roles": list(roles),
        "price": _price(price),
        "price_date": price.date if price else "",
        "price_source": price.source if price else "",
        "key": key,
        "extra": extra,
        "retired": known.retired,
        "note": fault or known.note,
    }


def _price(price: Price | None) -> dict[str, float] | None:
    if price is None:
        return None
    names = (
        "input_per_m",
        "output_per_m",
        "cached_per_m",
        "image_input_per_m",
        "image_output_per_m",
        "image_out_each",
    )
    return {name: value for name in names if (value := getattr(price, name)) is not None}


def _key(names: tuple[str, ...]) -> str:
    if not names:
        return "not needed"
    found = next((name for name in names if os.environ.get(name, "").strip()), None)
    return f"found ({found})" if found else f"missing ({names[0]})"


def _extra(extra: tuple[str, str] | None) -> str:
    if extra is None:
        return "not needed"
    return "installed" if has_module(extra[1]) else f"missing: pip install 'plantain[{extra[0]}]'"


def _print(rows: list[dict[str, object]]) -> None:
    table = Table(show_lines=False, expand=True)
    table.add_column("model", no_wrap=True)
    for column in ("roles", "$ per million tokens", "key", "note"):
        table.add_column(column, overflow="fold")
    for row in rows:
        said = [str(row["note"])] if row["note"] else []
        if row["retired"]:
            said.insert(0, f"retired {row['retired']}")
        if str(row["extra"]).startswith("missing"):
            said.append(str(row["extra"]))
        roles = row["roles"]
        assert isinstance(roles, list)
        cells = (
            str(row["name"]),
            ", ".join(roles),
            _say_price(row["price"]),
            str(row["key"]),
            "; ".join(said),
        )
        table.add_row(*(escape(cell) for cell in cells))
    console = Console()
    console.print(table)
    dated = next((row for row in rows if row["price_date"]), None)
    if dated:
        console.print(
            f"Prices as of {dated['price_date']} ({dated['price_source']}); a recipe can state its own."
        )
    console.print("Other ids work too: gemini/<id>, openai/<id>, openai-compatible/<id> with a base_url.")


def _say_price(price: object) -> str:
    if not isinstance(price, dict):
        return "unknown"
    if not any(price.values()):
        return "free"
    said = f"{price['input_per_m']:g} in, {price['output_per_m']:g} out"
    if "image_output_per_m" in price:
        said += f", {price['image_output_per_m']:g} for pictures"
    return said


def _probe(name: str, base_url: str, as_json: bool) -> int:
    provider_name, _, model = name.partition("/")
    module = provider(provider_name)
    look = getattr(module, "probe", None)
    if not model or look is None:
        raise InputError(f"--probe {name!r}: only hosted models can be probed, e.g. gemini/gemini-3.8-flash")
    done, said = asyncio.run(
        look(name, ProviderOptions(base_url=base_url, timeout_s=60.0, max_output_tokens=512))
    )
    if as_json:
        print(orjson.dumps({"name": name, "ok": done, "said": said}).decode())
    else:
        print(f"{name}: {'answered' if done else 'did not answer'}: {said}")
    return 0 if done else 1
