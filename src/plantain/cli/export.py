"""`plantain export`: a run as a dataset that others can use."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

if TYPE_CHECKING:
    from plantain.release.export import ExportSummary

from plantain.cli.terminal.application import application
from plantain.files.installed import installed
from plantain.records.counts import counted

app = application()
LAYOUTS = "plantain.layouts"

DEFAULT_LAYOUTS = "med-banana,parquet,preference,trajectory"


@app.command(epilog="Example: plantain export runs/demo --to release --licence CC-BY-4.0")
def export(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the run; it may still be building.")],
    to: Annotated[
        Path, typer.Option("--to", metavar="OUT", help="New folder; an interrupted one is continued.")
    ],
    layout: Annotated[
        str,
        typer.Option(metavar="NAMES", help=f"Any of {', '.join(installed(LAYOUTS))}; separated by commas."),
    ] = DEFAULT_LAYOUTS,
    redistribution_approved: Annotated[
        str, typer.Option(metavar="REF", help="Agreement that allows redistributing a credentialed source.")
    ] = "",
    licence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[DATASET=]TERMS",
            help="Your licence for the edits: an SPDX id, a web address, or a file.",
        ),
    ] = None,
    originals: Annotated[
        str,
        typer.Option(
            metavar="auto|none",
            help="Source images: where their licence lets them be passed on (open, attribution), or none.",
        ),
    ] = "auto",
    original_licence: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET=TERMS", help="The owner's own licence of source images that go along."),
    ] = None,
    study: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="STUDY",
            help="A reader study of this run comes along: what was asked, every answer, ratings by task; no names, no "
            "free text.",
        ),
    ] = None,
    doi: Annotated[
        str, typer.Option(help="The dataset's DOI, for the card, CITATION.cff and Croissant.")
    ] = "",
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="CERT", help="Add C2PA manifests: PEM chain, leaf first.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="KEY", help="Private key of CERT, PEM.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Make a release of a run's closed tasks: layouts, checksums, licences, cards. Type it again to continue."""
    from plantain.release.plan import ExportOptions

    options = ExportOptions(
        tuple(name.strip() for name in layout.split(",") if name.strip()),
        redistribution_approved=redistribution_approved,
        sign_cert=sign,
        sign_key=key,
        licences=tuple(licence or ()),
        originals=originals,
        original_licences=tuple(original_licence or ()),
        doi=doi,
        beside=_studies(study or [], run),
    )
    from plantain.release.export import export_run

    on_stage = None if as_json else lambda stage: print(f"  {stage} ...", file=sys.stderr)
    summary = export_run(run, to, options, on_stage)
    print(orjson.dumps(_document(summary)).decode() if as_json else _lines(summary))


def _document(summary: ExportSummary) -> dict[str, object]:
    facts = summary.facts
    return {
        "out": str(summary.out),
        "files": summary.files,
        "images": summary.images,
        "originals": summary.originals,
        "bytes": summary.bytes,
        "tasks": facts.tasks,
        "left_out": facts.left_out,
        "splits": facts.splits,
        "pairs": facts.pairs,
        "without_pair": facts.without_pair,
        "licences": [
            {name: part[name] for name in ("part", "licence", "decided")} for part in summary.licences
        ],
        "complete": summary.complete,
        "resumed": summary.resumed,
    }


def _licence_line(summary: ExportSummary) -> str:
    """What the release lets others do."""
    parts = ", ".join(f"{part['part']} {part['licence']}" for part in summary.licences)
    return f"licences: {parts}; read LICENSES/ before you publish"


def _studies(folders: list[Path], run: Path) -> dict[str, bytes]:
    """Return the files of reader studies by their path in the release."""
    if not folders:
        return {}  # loading the reader takes longer than a small export
    from plantain.review.results.released import study_for_release

    return {path: data for folder in folders for path, data in study_for_release(folder, run).files.items()}


def _originals_line(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Which sources' originals go along, and which stay."""
    carried = [f"{name} {count['carried']} of {sum(count.values())}" for name, count in counts.items()]
    return f"originals: {', '.join(carried)}; those of credentialed or unknown sources never leave"


def _lines(summary: ExportSummary) -> str:
    from plantain.release.splits import empty_splits

    facts = summary.facts
    pairs = sum(facts.pairs.values())
    reasons = ", ".join(f"{n} {why}" for why, n in facts.without_pair.items()) or "none"
    lines = [
        f"{summary.out}: {counted(summary.files, 'data file')}, {summary.bytes / 1e6:,.1f} MB, "
        f"{counted(summary.images, 'image')} in them",
        "tasks: " + ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in facts.tasks.items()),
        "splits: "
        + ", ".join(f"{n} {name}" for name, n in facts.splits.items())
        + f" (tasks, in {counted(facts.split_groups, 'group')}, never split)",
        f"preference pairs: {pairs}, from tasks with both a success and a failure; tasks without: {reasons}",
    ]
    if none := empty_splits(facts.splits, facts.split_groups):
        lines.append(
            f"{none}; a group's split hangs on its name alone, so that none changes sides as a run grows: "
            "hold out whole groups yourself, or release a larger run"
        )
    if facts.ungrouped_images:
        lines.append(
            f"{counted(facts.ungrouped_images, 'image has', 'images have')} no patient or study id in their source: "
            "only equal files are kept on one side of the split"
        )
    lines.append(_licence_line(summary))
    if facts.originals:
        lines.append(_originals_line(facts.originals))
    if facts.left_out:
        lines.append(f"left out: {counted(facts.left_out, 'task that is', 'tasks that are')} not closed yet")
    if summary.complete:
        lines.insert(0, "This release was already whole; nothing was written.")
    return "\n".join(lines)
