"""`plantain train dpo`: train an editor on the preferences of a release, after supervised steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application
from plantain.cli.terminal.ctrl_c import stopping_on_ctrl_c
from plantain.cli.train.bar import TrainingBar
from plantain.cli.train.settings import read_plan, settings_help
from plantain.models.diffusers.settings import Settings
from plantain.models.extras import require_extra
from plantain.runs.settings.terms import load_terms
from plantain.train.plans import PreferencePlan
from plantain.train.releases import ReleasePreferences, StoredOriginals

app = application()
STOPPED = 3


@app.command()
def dpo(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Release with the preference table.")],
    model: Annotated[
        str, typer.Option("--model", help="InstructPix2Pix: diffusers/FOLDER or diffusers/HUB-ID.")
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="New folder, or one to resume.")],
    originals: Annotated[
        Path | None, typer.Option(help="Run or catalogue with the originals [default: the release].")
    ] = None,
    chosen: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=settings_help(PreferencePlan))
    ] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML with [providers.diffusers].")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print machine-readable results.")] = False,
) -> int:
    """Train an InstructPix2Pix by Diffusion-DPO to prefer edits that the judge accepted to those that it rejected.

    Training ends early when the winner's own error on monitored pairs exceeds the bound. Ctrl-C keeps finished steps;
    run the same command to resume.

    Example: plantain train dpo release --model diffusers/timbrooks/instruct-pix2pix --to runs/dpo --set beta=2000
    """
    plan = read_plan(PreferencePlan, chosen or ())
    require_extra("plantain train dpo", "torch", "torch", "diffusers", "peft")
    from plantain.train.base import open_base
    from plantain.train.preference_run import MODEL, train_preferences

    source = ReleasePreferences(release, StoredOriginals(originals or release))
    base = open_base(model, load_terms(settings, (model,)).provider_as(model, Settings))
    with TrainingBar(quiet=as_json) as bar, stopping_on_ctrl_c(bar.note) as stop:
        record = train_preferences(source, base, plan, to, progress=bar, stop=stop)
    if record is None:
        typer.echo("plantain: stopped (interrupted); run the same command to resume", err=True)
        return STOPPED
    if as_json:
        typer.echo(orjson.dumps({"model": str(to / MODEL), **record}).decode())
        return 0
    if record["stopped"]:
        typer.echo(f"ended at step {record['step']}: {record['stopped']}")
    typer.echo(f"model: {to / MODEL}")
    return 0
