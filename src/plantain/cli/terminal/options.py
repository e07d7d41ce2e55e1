"""Options that mean the same in every command that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done; do nothing.")]
EngineKind = Annotated[
    str,
    typer.Option("--engine", metavar="KIND", help="Where heavy work runs, local or ray; replaces [engine]."),
]
ModelChange = Annotated[
    bool, typer.Option("--accept-model-change", help="Continue although a provider serves another model.")
]
OwnFindings = Annotated[
    list[Path] | None,
    typer.Option("--findings", metavar="FILE", help="Your own findings in TOML; repeatable."),
]
Cards = Annotated[
    list[Path] | None,
    typer.Option("--card", metavar="FILE", help="A judge's card.json, copied into the run."),
]
SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", metavar="FILE", help="TOML with [limits], [providers.NAME], [consent], [engine]."
    ),
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of the run; it may still be building.")
]
RecipeArgument = Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe in TOML.")]
