"""`plantain init`: a first recipe that fits a catalogue."""

from __future__ import annotations

from pathlib import Path

import typer

from plantain.catalogue.store import Catalogue
from plantain.cli.terminal.options import AsJson, OwnFindings
from plantain.cli.terminal.tables import print_json
from plantain.findings import load_taxonomy
from plantain.models.registry import today
from plantain.pipeline.first_recipe import first_recipe
from plantain.pipeline.recipe import load_recipe
from plantain.records import InputError
from plantain.records.messages import command_line, counted


def init(
    catalogue: Path = typer.Argument(..., metavar="CATALOGUE", help="Folder made by `plantain ingest`."),
    to: Path = typer.Option(Path("pilot.toml"), metavar="FILE", help="The recipe to write."),
    findings: OwnFindings = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented recipe of a small pilot with offline models, for the findings that the catalogue allows.

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
        print_json({"recipe": str(to), "findings": recipe.data.findings})
        return
    print(
        f"{to}: a pilot of {counted(len(recipe.data.findings), 'finding')}; next: {command_line('plan', to)}"
    )
