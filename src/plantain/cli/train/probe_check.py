"""`plantain train probe-check`: a probe measured on labelled pictures that it was not made from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from plantain.cli.terminal.application import application
from plantain.cli.terminal.tables import print_table
from plantain.cli.train.probe import interval
from plantain.models.extras import require_extra
from plantain.models.probe.folder import Probe
from plantain.records.counts import counted
from plantain.train.probe.pictures import labelled_frames

app = application()


@app.command("probe-check")
def probe_check(
    probe: Annotated[Path, typer.Argument(metavar="PROBE", help="folder that `plantain train probe` made")],
    catalogue: Annotated[Path, typer.Argument(metavar="CATALOGUE", help="other labelled pictures")],
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Measures a probe's AUC and calibration on other labelled pictures.

    Findings that no picture there has are left out. AUC is no evidence that the probe sees the finding: that is what
    the controls of its own card are for.

    Example: plantain train probe-check probes/brain other-catalogue --json
    """
    require_extra("plantain train probe-check", "torch", "torch", "safetensors")
    from plantain.train.probe.training import check_probe

    opened = Probe.open(probe)
    pictures = labelled_frames(catalogue, opened.card.findings, least=1)
    found = check_probe(opened, pictures)
    warned = pictures.digest == opened.card.catalogue
    if as_json:
        document = {
            "findings": {
                name: {"auc": area.auc, "low": area.low, "high": area.high, "n": area.n}
                for name, area in found.findings.items()
            },
            "ece": found.ece,
            "groups": found.groups,
            "learned_from_these": warned,
            "passes": not opened.why_not,
        }
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return 0
    table = Table(
        title=f"{probe} on {catalogue}: {counted(found.pictures, 'picture')}, {counted(found.groups, 'group')}"
    )
    for heading in ("finding", "AUC", "cases"):
        table.add_column(heading, justify="left" if heading == "finding" else "right")
    for (name, area), cases in zip(found.findings.items(), pictures.labels.sum(axis=0), strict=True):
        table.add_row(name, interval(area.auc, area.low, area.high), str(int(cases)))
    print_table(table)
    print(f"expected calibration error: {found.ece:.3f}")
    if warned:
        print("the probe learned from this catalogue: these numbers say nothing about unseen pictures")
    return 0
