"""`plantain reconcile`: held money settled by a provider's bill."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted
from plantain.runs.money.reconcile import reconcile as reconcile_run

app = application()


@app.command()
def reconcile(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run's folder")],
    bill: Annotated[
        Path, typer.Argument(metavar="BILL.csv", help="the provider's bill, one row a call or a day")
    ],
    provider: Annotated[str, typer.Option(help="whose bill it is, where it does not say so")] = "",
    zone: Annotated[
        str, typer.Option(help="time zone of its days, e.g. America/Los_Angeles; UTC by default")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> None:
    """Settles calls of unknown cost by a provider's bill.

    A row with the id of an answer settles that call; a day's total, less what is known of that day, what was lost then.
    Doing it again changes nothing.

    Example: plantain reconcile runs/cxr-pilot bill.csv --provider gemini
    """
    found = asyncio.run(reconcile_run(run, bill, provider, zone))
    if as_json:
        document = {name: value for name, value in asdict(found).items() if name != "costs"}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    print(
        f"{counted(found.settled, 'call')} of unknown cost settled at ${found.settled_usd:.4f}, "
        f"{found.still_held} still held; "
        f"{found.changed} costs changed"
    )
    if found.short:
        more = ", ..." if len(found.short) > 5 else ""
        print(
            f"{', '.join(found.short[:5])}{more}: below what the answered calls cost; "
            "nothing settled there (days of another time zone, --zone? a bill that is not complete?)"
        )
    if found.foreign_usd:
        print(f"${found.foreign_usd:.4f} of the bill belong to no call of this run")
