"""`plantain models`: roles, prices, keys and packages of the known models, and a call that tries one (`--probe`)."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.tables import TerminalConsole, print_json
from plantain.files.installed import has_module, install_line
from plantain.models.diffusers.facts import facts_of
from plantain.models.hosted.writer_and_judge import LanguageRole
from plantain.models.registry import (
    KnownModel,
    Preset,
    endings,
    known_model,
    presets,
    price_of,
    provider,
    provider_names,
)
from plantain.records import InputError, Price
from plantain.records.messages import command_line, counted
from plantain.runs.setup import RunSetup
from plantain.runs.terms import load_terms

_PRICES = (
    *("input_per_m", "output_per_m", "cached_per_m", "cache_write_per_m", "image_out_each"),
    *("image_input_per_m", "image_output_per_m", "cached_image_per_m"),
)


def models(
    probe: str = typer.Option("", metavar="NAME", help="Make one cheap call to a hosted writer or judge."),
    settings: Path | None = typer.Option(None, metavar="FILE", help="Recipe or settings file for --probe."),
    everything: bool = typer.Option(
        False, "--all", help="Also models without a key, package or weights here."
    ),
    as_json: AsJson = False,
) -> int:
    """List known models: roles, price with its date, key found or missing. Other ids of the providers work too.

    Example: plantain models --probe gemini/gemini-3.8-flash
    """
    if probe:
        return _probe(probe, settings, as_json)
    rows = model_rows()
    if as_json:
        print_json(rows)
    else:
        ready = [row for row in rows if everything or _is_ready(row)]
        _print(ready)
        if len(ready) < len(rows):
            hidden = counted(len(rows) - len(ready), "model")
            print(
                f"{hidden} without a key, package or weights on this machine: {command_line('models', '--all')}"
            )
    return 0


def _is_ready(row: dict[str, Any]) -> bool:
    """Return True if the row's key was found, its package is installed and its weights are on this machine."""
    key = row["key"].startswith(("found", "not needed"))
    return key and not row["extra"].startswith("missing") and row.get("on_disk", "yes") == "yes"


def model_rows() -> list[dict[str, Any]]:
    """List every known model as a JSON row, and "provider/…" for providers that accept any id."""
    rows: list[dict[str, Any]] = []
    for name in provider_names():
        try:
            module = provider(name)
        except InputError as error:
            rows.append(_row(f"{name}/…", (), "", "", str(error)))
            continue
        key = getattr(module, "SIGNS_IN", "") or _key(getattr(module, "KEYS", ()))
        extra = _extra(getattr(module, "EXTRA", None))
        if name == "openai-compatible":
            key = f"{key} (optional)"
        roles = getattr(module, "ROLES", ("writer", "editor", "judge"))
        known = dict(module.MODELS) or {f"{name}/…": roles}
        known |= {row.name: ("editor",) for row in presets().values() if row.name.startswith(f"{name}/")}
        rows += [_row(model, roles, key, extra, "") for model, roles in known.items()]
    return rows


def _row(name: str, roles: tuple[str, ...], key: str, extra: str, fault: str) -> dict[str, Any]:
    known, price = known_model(name) or KnownModel(name, roles), price_of(name)
    return {
        "name": name,
        "roles": list(roles),
        "price": _price(price),
        "price_date": price.date if price else "",
        "price_source": price.source if price else "",
        "key": key,
        "extra": extra,
        "retired": known.retired,
        "successor": known.successor,
        "note": fault or known.note,
        **(_preset_facts(presets()[name]) if name in presets() else {}),
    }


def _preset_facts(preset: Preset) -> dict[str, Any]:
    """Return a preset's settings and source; its model if a hosted one answers, else what its weights need."""
    published = {"settings": dict(preset.settings), "sweep": {k: list(v) for k, v in preset.sweep.items()}}
    about: dict[str, Any] = {"preset": published, "prompt": preset.prompt, "source": preset.source}
    if preset.model:
        return {**about, "model": preset.model, "note": f"for the benchmark; {preset.model} answers"}
    return {**about, **facts_of(preset)}


def _price(price: Price | None) -> dict[str, float] | None:
    if price is None:
        return None
    return {name: value for name in _PRICES if (value := getattr(price, name)) is not None}


def _key(names: tuple[str, ...]) -> str:
    if not names:
        return "not needed"
    found = next((name for name in names if os.environ.get(name, "").strip()), None)
    return f"found ({found})" if found else f"missing ({names[0]})"


def _extra(extra: tuple[str, str] | None) -> str:
    if extra is None:
        return "not needed"
    return "installed" if has_module(extra[1]) else f"missing: {install_line(extra[0])}"


def _print(rows: list[dict[str, Any]]) -> None:
    for name, group in itertools.groupby(rows, lambda row: row["name"].partition("/")[0]):
        provider_rows = list(group)
        first = provider_rows[0]
        facts = [f"key {first['key']}", f"package {first['extra']}"]
        about = "; ".join(fact for fact in facts if not fact.endswith("not needed"))
        title = f"{name}: {about}".rstrip(": ")
        # Without frames: a long id, its roles, price and end fit a terminal of 80 columns.
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        if "on_disk" in first:  # open weights
            table.add_column("editor", overflow="fold", min_width=24)
            table.add_column("on disk", overflow="fold")
            table.add_column("GB", justify="right", no_wrap=True)
            table.add_column("licence (* to be accepted)", overflow="fold", min_width=12)
            for row in provider_rows:
                size = f"{row['disk_gb']:g}" if row["disk_gb"] else ""
                licence = f"{row['licence']}{' *' if row['conditions'] else ''}"
                cells = (row["name"].partition("/")[2], str(row["on_disk"]), size, licence)
                table.add_row(*cells)
        else:
            for heading in ("model", "roles", "$ per M"):
                table.add_column(heading, no_wrap=True)
            table.add_column("retired", overflow="fold", min_width=10)
            for row in provider_rows:
                cells = (row["name"], ", ".join(row["roles"]), _cost(row["price"]), row["retired"])
                table.add_row(*cells)
        TerminalConsole().print(table)
    if dated := next((row for row in rows if row["price_date"]), None):
        print(
            "Prices in $ per million tokens: in/out, or in/out/images; as of "
            f"{dated['price_date']} ({dated['price_source']}); a recipe can state its own."
        )
    for line in endings(row["name"] for row in rows):
        print(line)
    print(
        "Other ids work too: gemini/<id>, openai/<id>, vertex/<id> with a price in the recipe; "
        "azure/<deployment>, openai-compatible/<id> or an endpoint's own name with a base_url; "
        "diffusers/<hub id>, diffusers/<folder>, diffusers/<preset>@<folder>, process/<name>. Notes: --json."
    )


def _cost(price: dict[str, float] | None) -> str:
    if price is None:
        return "unknown"
    names = ("input_per_m", "output_per_m", "image_output_per_m")
    return "/".join(f"{price[name]:g}" for name in names if name in price) if any(price.values()) else "free"


def _probe(name: str, settings: Path | None, as_json: bool) -> int:
    """Ask a hosted model one short question, outside of any run; return the exit code."""
    terms = load_terms(settings, (name,))
    known, setup = known_model(terms.listed(name)), RunSetup(terms)
    setup.check(named=(name,), by="--probe")
    model = None if known is not None and known.roles == ("editor",) else setup.writer(name)
    if not isinstance(model, LanguageRole):
        raise InputError(f"--probe {name!r}: name a hosted writer or judge, e.g. gemini/gemini-3.8-flash")
    answered, said = asyncio.run(model.probe())
    if as_json:
        print_json({"name": name, "ok": answered, "said": said})
    else:
        print(f"{name}: {'answered' if answered else 'did not answer'}: {said}")
    return 0 if answered else 1
