"""`plantain export`: write a run as a dataset."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from plantain.cli.terminal.options import AsJson, RunArgument
from plantain.cli.terminal.progress import damage_named
from plantain.cli.terminal.tables import print_json
from plantain.files.installed import installed
from plantain.records.messages import counted, next_line
from plantain.release.plan import empty_splits

if TYPE_CHECKING:
    from plantain.release.export import ExportSummary

LAYOUTS = "plantain.layouts"

DEFAULT_LAYOUTS = "med-banana,parquet,preference,trajectory"


def export(
    run: RunArgument,
    to: Path = typer.Option(..., metavar="OUT", help="New folder."),
    layout: str = typer.Option(
        DEFAULT_LAYOUTS, metavar="NAMES", help=f"Any of {', '.join(installed(LAYOUTS))}; separated by commas."
    ),
    redistribution_approved: str = typer.Option(
        "", metavar="REF", help="Agreement to redistribute a source."
    ),
    licence: list[str] | None = typer.Option(
        None,
        metavar="[DATASET=]TERMS",
        help="Licence of all edits, or of one source: SPDX id or address.",
    ),
    originals: str = typer.Option("auto", metavar="auto|none", help="Add originals where licensed, or none."),
    doi: str = typer.Option("", help="The dataset's DOI, for the card, CITATION.cff and Croissant."),
    sign: Path | None = typer.Option(None, metavar="CERT", help="Add C2PA manifests: PEM chain, leaf first."),
    key: Path | None = typer.Option(None, metavar="KEY", help="Private key of CERT, PEM."),
    as_json: AsJson = False,
) -> int:
    """Make a release of a run's closed tasks: layouts, checksums, licences, cards.

    Example: plantain export runs/demo --to release --licence CC-BY-4.0
    """
    from plantain.release.plan import ExportOptions

    options = ExportOptions(
        tuple(name.strip() for name in layout.split(",") if name.strip()),
        redistribution_approved=redistribution_approved,
        sign_cert=sign,
        sign_key=key,
        licences=tuple(licence or ()),
        originals=originals,
        doi=doi,
    )
    from plantain.release.export import export_run

    on_stage = None if as_json else lambda stage: print(f"  {stage} ...", file=sys.stderr)
    summary = export_run(run, to, options, on_stage)
    if as_json:
        print_json(_document(summary))
    else:
        print(_lines(summary))
        print(next_line("verify", to, "--against", run))
    return damage_named(summary.facts.damaged, "left out of the release")


def _document(summary: ExportSummary) -> dict[str, object]:
    known = ("out", "files", "images", "originals", "bytes", "remarks")
    facts = ("tasks", "left_out", "damaged", "splits", "pairs")
    parts = [{name: part[name] for name in ("part", "licence", "decided")} for part in summary.licences]
    return {
        **{name: getattr(summary, name) for name in known},
        **{name: getattr(summary.facts, name) for name in facts},
        "licences": parts,
    }


def _lines(summary: ExportSummary) -> str:
    facts = summary.facts
    lines = [
        f"{summary.out}: {counted(summary.files, 'data file')}, {summary.bytes / 1e6:,.1f} MB, "
        f"{counted(summary.images, 'image')} in them",
        "tasks: " + ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in facts.tasks.items()),
        "splits: "
        + ", ".join(f"{n} {name}" for name, n in facts.splits.items())
        + f" (tasks, in {counted(facts.split_groups, 'group')}, never split)",
        f"preference pairs: {facts.pairs}, from tasks with both a success and a failure",
    ]
    if none := empty_splits(facts.splits, facts.split_groups):
        lines.append(
            f"{none}; splits need at least 10 groups: hold out whole groups yourself, or release a larger run"
        )
    if facts.ungrouped_images:
        lines.append(
            f"{counted(facts.ungrouped_images, 'image has', 'images have')} no patient or study id in their source: "
            "only equal files are kept on one side of the split"
        )
    parts = ", ".join(f"{part['part']} {part['licence']}" for part in summary.licences)
    lines += [f"licences: {parts}; read LICENSES/ before you publish", *summary.remarks]
    if facts.originals:
        carried = ", ".join(
            f"{n} {held['carried']} of {sum(held.values())}" for n, held in facts.originals.items()
        )
        lines.append(f"originals: {carried}; originals of credentialed or unknown sources are never included")
    if facts.left_out:
        lines.append(f"left out: {counted(facts.left_out, 'pending task')}; resume the build to include them")
    return "\n".join(lines)
