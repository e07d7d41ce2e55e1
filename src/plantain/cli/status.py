"""`plantain status`: where a run stands, also while it is being built."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from plantain.cli.application import application
from plantain.journal import JournalReader
from plantain.journal.batches import jobs_waiting
from plantain.journal.telemetry import status_summary

app = application()


@app.command()
def status(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="a run's folder")],
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> None:
    """Where a run stands. Reads only, and works while the run is being built.

    Example: plantain status runs/cxr-pilot
    """
    with JournalReader.open(run) as reader:
        told = status_summary(reader)
        jobs = jobs_waiting(reader)
        name = reader.header.name
    if as_json:
        print(orjson.dumps({**told, "batch_jobs": jobs}, option=orjson.OPT_INDENT_2).decode())
        return
    table = Table(title=f"{name} ({run})", show_header=False)
    table.add_column("what", style="bold")
    table.add_column("how many")
    for section in ("tasks", "rounds", "calls", "outcomes"):
        values = told[section]
        assert isinstance(values, dict)
        told_values = (
            f"round {key}: {n}" if section == "rounds" else f"{n} {key.replace('_', ' ')}"
            for key, n in values.items()
        )
        table.add_row("success in" if section == "rounds" else section, ", ".join(told_values) or "none")
    table.add_row("attempts", str(told["attempts"]))
    cost = told["cost_usd"]
    table.add_row("cost", "unknown" if cost is None else f"${cost:.4f}")
    for job in jobs:
        trouble = f" ({job['trouble']})" if job["trouble"] else ""
        table.add_row(
            "batch job", f"{job['id'] or job['key']}: {job['state']}, {job['requests']} requests{trouble}"
        )
    Console().print(table)
