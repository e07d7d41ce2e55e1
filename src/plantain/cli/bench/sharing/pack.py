"""`plantain bench pack`: a run as a submission to somebody's leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records import InputError
from plantain.records.counts import counted

app = application()


@app.command(epilog="Example: plantain bench pack runs/bench --to submission --arm gemini/m")
def pack(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a scored run.")],
    to: Annotated[Path, typer.Option("--to", metavar="BUNDLE", help="A new folder.")],
    arms: Annotated[
        list[str] | None,
        typer.Option("--arm", metavar="LABEL", help="Pack this arm. Default: all but the baselines."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Of the submission. Default: the run's folder.")] = "",
    cards: Annotated[
        list[str] | None,
        typer.Option(
            "--model-card", metavar="LABEL=TEXT", help="A line on an arm's model: who, what, where."
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study", metavar="STUDY", help="A reader study of this run, whose comparisons go along."
        ),
    ] = None,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Pack edits of credentialed pictures too.")
    ] = False,
) -> None:
    """Pack outputs, scores, judges' replies, seeds, settings and environment, every file with its checksum."""
    from plantain.bench.submission.packing import pack_run
    from plantain.cli.bench.study_ratings import study_pairs

    models: dict[str, str] = {}
    for card in cards or ():
        label, equals, text = card.partition("=")
        if not equals or not text.strip():
            raise InputError(f"--model-card {card[:60]}: expected LABEL=TEXT")
        models[label] = " ".join(text.split())[:500]
    packed = pack_run(
        run,
        to,
        arms=arms or (),
        name=name,
        models=models,
        pairs=study_pairs(study) if study is not None else (),
        restricted=restricted,
    )
    lost = f", {packed.without_image:,} without an image" if packed.without_image else ""
    typer.echo(
        f"{packed.path}: {counted(packed.arms, 'arm')}, {counted(packed.outputs, 'output')}{lost}, "
        f"{counted(packed.scores, 'score')}, "
        f"{packed.replies:,} judge replies"
    )
