"""`plantain train utility`: the value of edits as training data, on real held-out images."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer
from rich.table import Table

from plantain.cli.terminal.options import AsJson, RunArgument
from plantain.cli.terminal.progress import TrainingBar
from plantain.cli.terminal.tables import print_json, print_table, right
from plantain.files.installed import require_extra
from plantain.metrics.statistics.areas import PairedArea
from plantain.records.messages import next_line
from plantain.train.utility_images import read_sets


def utility(
    run: RunArgument,
    real: Path = typer.Option(..., metavar="CATALOGUE", help="Real labelled images."),
    finding: list[str] = typer.Option(..., metavar="NAME", help="A finding to classify; repeatable."),
    n: int = typer.Option(200, min=8, help="Real images in each training set."),
    seeds: int = typer.Option(5, min=2, help="Trainings per training set."),
    as_json: AsJson = False,
) -> int:
    """Train one small classifier on real images, on real images and edits, and on augmented real images.

    All make the same number of steps and are measured on the same real images of other patients; edits of held-out
    patients are not used. The result is the AUC difference to real images alone, paired by image and seed.

    Example: plantain train utility runs/pilot --real catalogue --finding glioma --finding meningioma --n 200
    """
    require_extra("plantain train utility", "torch", "torch")
    from plantain.train.utility import compare_arms

    names = tuple(dict.fromkeys(finding))
    with TrainingBar(quiet=as_json) as bar:
        bar.begin("reading images", 0)
        images, edits = read_sets(real, run, names)

        def progress(done: int, total: int) -> None:
            if done == 0:
                bar.begin("trainings", total)
            bar.step(done)

        found = compare_arms(images, edits, n, seeds, progress=progress)
    if as_json:
        print_json(asdict(found))
        return 0
    title = f"AUC on {found.held_out} real held-out images, {found.seeds} seeds, n = {found.n}"
    table = Table("training set", *right(*names), title=title)
    for arm, areas in found.areas.items():
        table.add_row(arm, *(f"{area:.3f}" for area in areas.values()))
    for arm, rows in found.differences.items():
        table.add_row(f"{arm}, difference", *map(_interval, rows.values()))
    print_table(table)
    print(next_line("view", run))
    return 0


def _interval(area: PairedArea) -> str:
    bounds = "" if area.low is None else f" ({area.low:+.3f} to {area.high:+.3f})"
    return f"{area.difference:+.3f}{bounds}"
