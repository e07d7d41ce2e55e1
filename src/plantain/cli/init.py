"""`plantain init`: a first recipe that fits a catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.catalogue.store import Catalogue
from plantain.cli.terminal.application import application
from plantain.findings import load_taxonomy
from plantain.models.hosted.known import today
from plantain.pipeline.first_recipe import first_recipe
from plantain.pipeline.recipe import load_recipe
from plantain.records import InputError
from plantain.records.counts import counted

app = application()


@app.command()
def init(
    catalogue: Annotated[
        Path, typer.Argument(metavar="CATALOGUE", help="a folder made by `plantain ingest`")
    ],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="the recipe to write")] = Path(
        "pilot.toml"
    ),
    findings: Annotated[
        list[Path] | None,
        typer.Option("--findings", metavar="FILE", help="own findings in TOML; may be named several times"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> None:
    """Writes a commented recipe of a small pilot: findings that the catalogue has images for, offline models.

    Example: plantain init catalogue --to pilot.toml
    """
    files = tuple(findings or ())
    with Catalogue.open(catalogue) as opened:
        text = first_recipe(opened, to, load_taxonomy(files), files, day=today())
    try:
        with to.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(f"{to}: already exists and is not overwritten; choose another --to") from None
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error.strerror})") from error
    recipe = load_recipe(to)
    if as_json:
        print(orjson.dumps({"recipe": str(to), "findings": recipe.data.findings}).decode())
        return
    print(f"{to}: a pilot of {counted(len(recipe.data.findings), 'finding')}; next: plantain plan {to}")
