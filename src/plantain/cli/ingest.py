"""`plantain ingest`: real images into a catalogue."""

from __future__ import annotations

import itertools
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.table import Table

from plantain.catalogue.gate import PrivacyGate
from plantain.catalogue.ingest import REJECTED, Ingested, ingest, write_rejected
from plantain.catalogue.near import NEAR, write_near_duplicates
from plantain.catalogue.store import NAME, Catalogue
from plantain.cli.terminal.options import AsJson, OwnFindings, parse_settings
from plantain.cli.terminal.progress import Bar, print_stop, say
from plantain.cli.terminal.tables import print_json, print_table
from plantain.findings import load_taxonomy
from plantain.pixels.decode import one_line
from plantain.privacy.rapid_text import open_reader, why_no_reader
from plantain.records import Consent, InputError, Licence
from plantain.records.messages import command_line, counted, init_line, like_path, typed
from plantain.sources.columns import ROLES
from plantain.sources.registry import (
    Refused,
    SourceOptions,
    TableRead,
    kinds,
    load,
)

SHOWN = 20
"""Rejected files that are named; rejected.csv lists all."""

_MOST = 12
"""Unused columns that are named."""

_PATIENT = "if another column is the patient, pass --column group=NAME"


def command(
    context: typer.Context,
    kind: str = typer.Argument("", metavar="KIND", help="Kind of source; --list names them."),
    path: Path | None = typer.Argument(None, metavar="PATH", help="The source: its folder or file."),
    out: Path | None = typer.Option(
        None, "--to", "--out", metavar="CATALOGUE", help="New or growing folder."
    ),
    modality: str = typer.Option("", help="Modality of a folder's images, e.g. chest_xray."),
    licence: str = typer.Option("unknown", help="open, attribution, credentialed or unknown."),
    dataset: str = typer.Option("", help="Name of the dataset; default: that of the kind or the folder."),
    version: str = typer.Option("", help="Version of the dataset, if the source does not state it."),
    consent_by: str = typer.Option("", help="Who permitted sending these images to hosted models; recorded."),
    agreement: str = typer.Option("", help="Reference to that written permission."),
    settings: list[str] = typer.Option([], "--set", help="Setting of the kind, name=value; repeatable."),
    table: Path | None = typer.Option(
        None, metavar="FILE", help="Labels and patients; default: PATH/labels.csv."
    ),
    columns: list[str] = typer.Option(
        [], "--column", metavar="ROLE=NAME", help="Role of a table's column; repeatable."
    ),
    findings: OwnFindings = None,
    skip_text: bool = typer.Option(False, "--skip-text", help="Do not look for burned-in text; recorded."),
    as_json: AsJson = False,
    list_kinds: bool = typer.Option(False, "--list", help="Name the kinds of source and stop."),
) -> None:
    """Read a source into a catalogue of prepared images: 1024x1024, pixels only.

    Example: plantain ingest folder scans/ --modality chest_xray --licence open --to catalogue

    scans/ contains one folder per finding (normal/, Pneumothorax/, ...), or images and a table labels.csv (or .xlsx)
    with the columns file, labels and optionally group (the patient), split and, for MRI, plane and sequence. Column
    names of published datasets work too, e.g. `Image Index`, `Finding Labels`, `Patient ID`. A file that cannot be
    used becomes one line in catalogue/rejected.csv. Run it again to add new images, corrected groups or
    the licence. Images with a face, or with text that may identify a patient, are quarantined until
    `plantain run quarantine` releases or masks them.
    """
    if list_kinds:
        _print_kinds(as_json)
        return
    if not kind or path is None or out is None:
        missing = "KIND" if not kind else "PATH" if path is None else "--to CATALOGUE"
        given = kind if kind is not None and Path(kind).exists() else "PATH"
        named = ("--modality", modality or "MODALITY", *(("--licence", licence) * (licence != "unknown")))
        example = command_line("ingest", "folder", given, *named, "--to", out or "catalogue")
        raise InputError(f"ingest: {missing} is missing, e.g. {example}")
    if licence not in tuple(Licence):
        raise InputError(f"--licence {licence!r}: choose one of {', '.join(Licence)}")
    if bool(consent_by) != bool(agreement):
        raise InputError("--consent-by, --agreement: give both, the name and the document")
    consent = Consent(consent_by, agreement) if consent_by else None
    source = load(kind)
    if not path.exists():
        raise InputError(f"{path}: does not exist{like_path(path)}")
    if (table is not None or columns) and not source.label_table:
        raise InputError(f"--table, --column: {kind} has tables of its own")
    asked = parse_settings(columns, "--column")
    options = SourceOptions(path, modality, Licence(licence), parse_settings(settings), table, asked)
    reader = source.reader(kind, options, load_taxonomy(findings or ()))
    known = {"dataset": one_line(dataset), "version": one_line(version), "consent": consent}
    stated = {field: value for field, value in known.items() if value}
    name = one_line(dataset or source.dataset or path.resolve().name)
    labels_file = (
        table or (path if path.is_dir() else path.parent) / "labels.csv" if source.label_table else None
    )
    try:
        with Catalogue.create(out) as catalogue:
            with Bar("ingest", quiet=as_json) as bar:
                gate = PrivacyGate(None if skip_text else open_reader())
                on_file = _progress(bar, reader.count())
                done = ingest(reader, catalogue, on_file=on_file, gate=gate, stated=stated)
            if (more := len(done.refused) - SHOWN) > 0:
                say(f"and {more} more rejected")
            write_rejected(out, name, done.refused)
            write_near_duplicates(out / NEAR, done.near)
            _remarks(catalogue, done, out, labels_file, skip_text)
            _report(catalogue, done, out, as_json)
    except KeyboardInterrupt:
        raise typer.Exit(print_stop(context, f"interrupted; finished images stay in {out}")) from None
    except (OSError, sqlite3.OperationalError) as error:
        why = getattr(error, "strerror", None) or error
        rest = "it is intact; run ingest again" if (out / NAME).exists() else "choose another --to"
        raise InputError(f"{out}: cannot be written ({why}); {rest}") from error
    if not (done.added or done.unchanged or done.changed or done.quarantined):
        say(f"{path}: no image could be used")
        raise typer.Exit(1)


def _remarks(catalogue: Catalogue, done: Ingested, out: Path, table: Path | None, skipped: bool) -> None:
    """Print warnings about the images; `table` is an optional label table, None if the source has its own."""
    if done.unlabelled:
        how = f"; add labels in {table} (file,labels[,group,split]) and ingest again" if table else ""
        say(f"{counted(done.unlabelled, 'image')} without a label, used only with add_to = 'any'{how}")
    for fields, images in sorted(done.kept.items()):
        kept = f"{counted(images, 'image keeps', 'images keep')} the {fields} recorded at the first ingest"
        other = typed.get().replace(shlex.join(["--to", str(out)]), shlex.join(["--to", f"{out}-2"]))
        say(f"{kept}; ingest into a new catalogue: {other}")
    for note, images in sorted(done.doubtful.items()):
        say(
            f"{counted(images, 'image')} noted as {note!r}: if it is not for editing, ingest without its file"
        )
    for line in group_remarks(done, takes_table=table is not None):
        say(line)
    if unknown := catalogue.count_by("licence").get(Licence.UNKNOWN, 0):
        say(
            f"{counted(unknown, 'image')} with an unknown licence: a release will not contain the originals, and "
            "their edits cannot be licensed; if you know it, ingest again with --licence open (or attribution)"
        )
    if unread := catalogue.count_by("text_checked").get("0", 0):
        why = "--skip-text" if skipped else why_no_reader() or "rendered or edited"
        say(
            f"burned-in text was not checked in {counted(unread, 'image')} ({why}): check for names and dates "
            "before sharing."
        )


def _print_kinds(as_json: bool) -> None:
    if as_json:
        print_json(kinds())
        return
    table = Table("kind", "reads")
    table.columns[1].overflow = "fold"
    for name, summary in kinds().items():
        table.add_row(name, summary)
    print_table(table)


def _report(catalogue: Catalogue, done: Ingested, out: Path, as_json: bool) -> None:
    counts = {
        f"by_{field}": {value or "none": n for value, n in catalogue.count_by(field).items()}
        for field in ("label", "split", "modality")
    }
    # A rejected folder counts with its files.
    rejected = sum({refused.name: refused.files for refused in done.refused}.values())
    if as_json:
        numbers = {"images": len(catalogue), "rejected": rejected}
        names = ("added", "unchanged", "changed", "ungrouped", "synthetic", "unlabelled", "newly_quarantined")
        more = {
            **{name: getattr(done, name) for name in names},
            "tables": [asdict(table) for table in done.tables],
            "near_duplicates": len(done.near),
            "left_out": {item.reason: item.count for item in done.left_out},
            "text_checked": not catalogue.count_by("text_checked").get("0"),
            "quarantined": len(done.quarantined),
            "catalogue": str(out),
        }
        print_json({**numbers, **counts, **more})
        return
    changed = f", {done.changed} with a new label, group, split or licence" if done.changed else ""
    print(
        f"{out}: {counted(len(catalogue), 'image')}, {done.added} new{changed}; "
        f"{counted(rejected, 'file')} rejected"
    )
    for table in done.tables:
        print(table_line(table))
    if done.synthetic:
        print(
            f"{counted(done.synthetic, 'image is', 'images are')} marked as synthetic in the file and recorded so"
        )
    for label, count in counts["by_label"].items():
        print(f"  {count:6d}  {label}")
    if done.near:
        print(
            f"{counted(len(done.near), 'pair')} of near duplicates, each assigned to one group: {out / NEAR}"
        )
    for item in done.left_out:
        print(f"left out {item.count}: {item.reason}")
    if done.quarantined:
        new = f", {done.newly_quarantined} new" if done.newly_quarantined else ""
        print(
            f"{counted(len(done.quarantined), 'image')} in quarantine{new}; builds skip them until they are released "
            f"or masked:"
        )
        print(f"  {command_line('run', 'quarantine', out)}")
    if done.refused:
        print(f"rejected files with reasons: {out / REJECTED}")
    if len(catalogue):
        print(init_line(out))


def _progress(bar: Bar, total: int | None) -> Callable[[Refused | None], None]:
    """Return a function that counts one more file, and names it if it is one of the first rejected ones."""
    files, rejected = itertools.count(1), itertools.count(1)

    def file(refused: Refused | None) -> None:
        done = next(files)
        if refused is not None and next(rejected) <= SHOWN:
            say(f"rejected {refused.name}: {refused.reason}")
        bar.move(done, total)
        bar.line(lambda _: f"{done}/{total or '?'} files")

    return file


def table_line(table: TableRead) -> str:
    """Describe the columns of a table in one line: their roles, and those not used."""
    columns = table.columns
    named = [(role, name) for role in ROLES if (name := getattr(columns, role)) is not None]
    used = ", ".join(f"{role} from {one_line(name)!r}" for role, name in named)
    if columns.marked:
        used += f", labels from the columns {_some(columns.marked)} (1: present; 0, -1 or empty: absent)"
    unused = f"; not used: {_some(columns.unused)}" if columns.unused else ""
    grouped = (
        f"; {counted(table.grouped, 'image')} of {counted(table.groups, 'group')}" if table.grouped else ""
    )
    return f"{one_line(table.name)}: {used}{grouped}{unused}"


def group_remarks(done: Ingested, *, takes_table: bool) -> Iterator[str]:
    """Yield warnings about groups, one line each.

    Args:
        done: the ingest.
        takes_table: True if this kind of source accepts a label table.
    """
    for table in done.tables:
        columns = table.columns
        if table.grouped and not columns.patient:
            whose = f"column {one_line(columns.group)!r}" if columns.group else "names of folders"
            yield f"{one_line(table.name)}: groups come from {whose}, not from a patient column; {_PATIENT}"
        if table.groups == 1 < table.grouped:
            yield f"{one_line(table.name)}: all images belong to one group, so no split can separate them"
    if done.ungrouped:
        without_groups = [table for table in done.tables if table.columns.group is None]
        if without_groups:
            how = f"; {one_line(without_groups[0].name)} has no patient column; {_PATIENT}"
        else:
            how = "; name patients in a labels.csv, column group, and ingest again" if takes_table else ""
        yield (
            f"{counted(done.ungrouped, 'image')} without a known patient: images of one patient may be on both sides "
            f"of a split, and must be withdrawn one by one (run withdraw --image){how}"
        )
    if done.by_study:
        yield (
            f"{counted(done.by_study, 'image')} without a known patient (PatientID is missing or a placeholder), "
            f"grouped by study: images of one patient may be on both sides of a split"
        )


def _some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(repr(one_line(name)) for name in names[:_MOST]) + rest
