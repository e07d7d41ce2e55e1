"""`plantain train probe`: a small classifier of findings on labelled pictures, with a card that may bar it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from pydantic import TypeAdapter
from rich.table import Table

from plantain.cli.terminal.application import application
from plantain.cli.terminal.tables import print_table
from plantain.cli.train.bar import TrainingBar
from plantain.models.extras import require_extra
from plantain.models.probe.card import ProbeCard
from plantain.records import InputError
from plantain.train.probe.pictures import LEAST, labelled_frames

app = application()


def named(findings: str) -> tuple[str, ...]:
    """Names of findings, separated by commas. Raises InputError where there is none."""
    names = tuple(name.strip() for name in findings.split(",") if name.strip())
    if not names:
        raise InputError("--findings: name at least one, e.g. --findings glioma,meningioma")
    return names


@app.command()
def probe(
    catalogue: Annotated[
        Path, typer.Argument(metavar="CATALOGUE", help="real labelled pictures, as `plantain ingest` made it")
    ],
    findings: Annotated[str, typer.Option("--findings", metavar="NAMES", help="separated by commas")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="for the probe and its card")],
    epochs: Annotated[int, typer.Option(min=1, help="times that every picture is shown")] = 24,
    width: Annotated[int, typer.Option(min=16, max=512, help="channels of the network's widest layer")] = 96,
    least: Annotated[
        int,
        typer.Option(min=20, help="independent pictures that each finding needs, and as many without any"),
    ] = LEAST,
    seed: Annotated[int, typer.Option(min=0, help="of split, weights and draws")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="the card, as JSON")] = False,
) -> int:
    """Trains a probe on real labelled pictures; measures whether it learned the findings or where pictures come from.

    Patients and near duplicates stay on one side of the split. Beside AUC and calibration its card has controls whose
    right answer is known: insides exchanged between cases and others, masses drawn independently, halves mirrored, the
    finding's place covered, and borders, codec, sharpness and tones exchanged. A probe whose card does not pass is
    kept, and refused as a judge: `judge = ["offline/instruments", "probe/FOLDER"]`.

    Example: plantain train probe catalogue --findings glioma,meningioma,pituitary --out probes/brain
    """
    require_extra("plantain train probe", "torch", "torch", "safetensors")
    from plantain.train.probe.learning import ProbeSchedule
    from plantain.train.probe.page import write_probe_page
    from plantain.train.probe.training import train_probe

    with TrainingBar(quiet=as_json) as bar:
        bar.begin("reading pictures", 0)
        pictures = labelled_frames(catalogue, named(findings), least=least)
        begun = [0]

        def advanced(step: int, of: int, loss: float) -> None:
            if not begun[0]:
                bar.begin("probe", of)
                begun[0] = of
            bar.step(step, loss)

        card = train_probe(pictures, ProbeSchedule(epochs=epochs, width=width), seed, out, advanced)
    page = write_probe_page(card, out)
    if as_json:
        card_json = TypeAdapter(ProbeCard).dump_python(card, mode="json")
        print(orjson.dumps({"passes": card.passes, **card_json}, option=orjson.OPT_INDENT_2).decode())
    else:
        print_probe_card(card)
        print(f"page: {page}")
    return 0


def print_probe_card(card: ProbeCard) -> None:
    """The card as tables for a person."""
    areas = Table(title=f"{card.modality}: AUC (patients {card.patients})")
    for heading in ("pictures", *card.findings):
        areas.add_column(heading, justify="left" if heading == "pictures" else "right")
    for what, row in {"held out": card.held_out, **card.areas_under}.items():
        areas.add_row(what, *(interval(a.auc, a.low, a.high) for a in row.values()))
    print_table(areas)
    controls = Table(title="called right")
    for heading in ("control", *card.findings):
        controls.add_column(heading, justify="left" if heading == "control" else "right")
    for what, rates in card.controls.items():
        controls.add_row(what, *(interval(r.rate, r.low, r.high) for r in rates.values()))
    print_table(controls)
    print(f"expected calibration error: {card.ece:.3f}")
    print(
        "the card passes: the probe may judge"
        if card.passes
        else "the card does not pass: the probe judges nothing"
    )
    for reason in card.why_not:
        print(f"  {reason}")


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """A value and its interval for a table."""
    if value is None:
        return "—"
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} ({low:.3f}–{high:.3f})"
