"""`plantain train dpo`: train an editor on the preferences of a release, after supervised steps."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from plantain.cli.terminal.ending import print_stop
from plantain.cli.terminal.options import BASE_MODEL, AsJson, Originals, SettingsFile
from plantain.cli.terminal.progress import TrainingBar, stopping_on_ctrl_c
from plantain.cli.terminal.tables import print_json
from plantain.cli.train.settings import read_plan, settings_help
from plantain.files.installing import require_extra
from plantain.models.diffusers.provider import Settings
from plantain.runs.settings.terms import load_terms
from plantain.train.plans import PreferencePlan
from plantain.train.releases import ReleasePreferences, StoredOriginals


def dpo(
    context: typer.Context,
    release: Path = typer.Argument(..., metavar="RELEASE", help="Release with the preference table."),
    model: str = typer.Option(..., help=BASE_MODEL),
    to: Path = typer.Option(..., metavar="DIR", help="New folder, or one to resume."),
    originals: Originals = None,
    chosen: list[str] | None = typer.Option(
        None, "--set", metavar="NAME=VALUE", help=settings_help(PreferencePlan)
    ),
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> int:
    """Train an InstructPix2Pix by Diffusion-DPO to prefer edits that the judge accepted to those that it rejected.

    Training ends early when the winner's own error on monitored pairs exceeds the bound. Ctrl-C keeps finished steps;
    the same command resumes.

    Example: plantain train dpo release --model diffusers/timbrooks/instruct-pix2pix --to runs/dpo --set beta=2000
    """
    plan = read_plan(PreferencePlan, chosen or ())
    require_extra("plantain train dpo", "torch", "torch", "diffusers", "peft")
    from plantain.train.editor import open_base
    from plantain.train.preference import MODEL, train_preferences

    source = ReleasePreferences(release, StoredOriginals(originals or release))
    base = open_base(model, load_terms(settings, (model,)).provider_as(model, Settings))
    with TrainingBar(quiet=as_json) as bar, stopping_on_ctrl_c() as stop:
        record = train_preferences(source, base, plan, to, progress=bar, stop=stop)
    if record is None:
        return print_stop(context, "interrupted")
    if as_json:
        print_json({"model": str(to / MODEL), **record})
        return 0
    if record["stopped"]:
        typer.echo(f"ended at step {record['step']}: {record['stopped']}")
    typer.echo(f"model: {to / MODEL}")
    typer.echo(f"next: measure it by bench generate with --editor {shlex.quote(f'diffusers/{to / MODEL}')}")
    return 0
