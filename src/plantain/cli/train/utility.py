"""`plantain train utility`: whether training with edits helps on real held-out pictures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from plantain.cli.terminal.application import application
from plantain.cli.terminal.tables import print_table
from plantain.cli.train.bar import TrainingBar
from plantain.cli.train.probe import interval, named
from plantain.models.extras import require_extra
from plantain.records.counts import counted
from plantain.train.probe.edits import MOST, made_edits
from plantain.train.probe.page import write_utility_page
from plantain.train.probe.pictures import labelled_frames

app = application()


@app.command()
def utility(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN|RELEASE", help="whose successful edits are learned from")
    ],
    real: Annotated[Path, typer.Option("--real", metavar="CATALOGUE", help="real labelled pictures")],
    findings: Annotated[str, typer.Option("--findings", metavar="NAMES", help="separated by commas")],
    n: Annotated[int, typer.Option("--n", min=8, help="real pictures that each arm learns from")] = 200,
    seeds: Annotated[int, typer.Option(min=2, help="trainings of each arm")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="times that the real pictures are shown")] = 30,
    width: Annotated[int, typer.Option(min=16, max=512, help="channels of the network's widest layer")] = 48,
    originals: Annotated[
        Path | None,
        typer.Option(help="run or catalogue with a release's originals; default: those that it carries"),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="for utility.html and .json")
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="edits that are learned from, drawn by hash above it")
    ] = MOST,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Trains the same small network on n real pictures, with edits added, and with standard augmentation.

    All make the same number of steps and are measured by the same real pictures of other groups; no edit of a held-out
    picture is learned from. What is said is the difference of AUC to real pictures alone, paired by picture and seed.

    Example: plantain train utility runs/pilot --real catalogue --findings glioma,meningioma --n 200 --to figures
    """
    require_extra("plantain train utility", "torch", "torch", "safetensors")
    from plantain.train.probe.learning import ProbeSchedule
    from plantain.train.probe.utility import edited_frames
    from plantain.train.probe.utility import utility as measured

    with TrainingBar(quiet=as_json) as bar:
        bar.begin("reading pictures", 0)
        pictures = labelled_frames(real, named(findings), least=10)
        edits = edited_frames(made_edits(folder, originals, most), pictures)
        schedule = ProbeSchedule(epochs=epochs, batch=32, width=width)

        def advanced(done: int, of: int) -> None:
            if done == 0:
                bar.begin("trainings", of)
            bar.step(done)

        found = measured(pictures, edits, n, seeds, schedule, advanced)
    page = write_utility_page(found, folder.name, to) if to is not None else None
    if as_json:
        print(orjson.dumps(asdict(found), option=orjson.OPT_INDENT_2).decode())
        return 0
    table = Table(
        title=(
            f"AUC on {counted(found.held_out, 'real held-out picture')}, {counted(found.seeds, 'seed')}, n = "
            f"{found.n}"
        )
    )
    for heading in ("learned from", *pictures.findings):
        table.add_column(heading, justify="left" if heading == "learned from" else "right")
    for arm, areas in found.areas.items():
        table.add_row(arm, *(f"{area:.3f}" for area in areas.values()))
    for arm, rows in found.differences.items():
        table.add_row(f"{arm}, difference", *(interval(d.difference, d.low, d.high) for d in rows.values()))
    print_table(table)
    if page is not None:
        print(f"page: {page}")
    return 0
