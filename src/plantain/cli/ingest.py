"""`plantain ingest`: real images into a catalogue."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from plantain.catalogue.gate import PrivacyGate
from plantain.catalogue.ingest import REJECTED, Ingested, check_earlier, ingest, write_rejected
from plantain.catalogue.near import NEAR, join_near_duplicates, write_near_duplicates
from plantain.catalogue.quarantine import held
from plantain.catalogue.store import NAME, Catalogue
from plantain.cli.ingest_table import group_remarks, table_line
from plantain.cli.terminal.application import application
from plantain.cli.terminal.tables import print_table
from plantain.engines.repeating import EngineThread
from plantain.findings import load_taxonomy
from plantain.pixels.decode import one_line
from plantain.privacy.text_reader import open_reader, why_no_reader
from plantain.records import Consent, InputError, Licence
from plantain.records.counts import counted
from plantain.runs.engine import engine_for_threads
from plantain.runs.settings.terms import load_terms
from plantain.sources.entries import NamingReader, Reader, Refused, SourceOptions
from plantain.sources.registry import kinds, load, parse_settings

app = application()

SHOWN, ALIKE = 20, 3
"""Refused files told one by one, and of one reason; the rest are counted, and in rejected.csv."""

BAR_AFTER_S = 2.0
PLAIN_EVERY_S = 10.0


@app.command()
def command(
    kind: str = typer.Argument("", metavar="KIND", help="Kind of source; --list names them."),
    path: Path | None = typer.Argument(None, metavar="PATH", help="The source: its folder or file."),
    out: Path | None = typer.Option(
        None, "--to", metavar="CATALOGUE", help="The catalogue: a folder that is made, or that grows."
    ),
    modality: str = typer.Option("", help="What the pictures of a folder show, e.g. chest_xray."),
    licence: str = typer.Option(
        "unknown", help="What their owner allows: open, attribution, credentialed, unknown."
    ),
    dataset: str = typer.Option("", help="Name of the dataset; else what the kind or the folder is called."),
    version: str = typer.Option("", help="Its version, where the source does not tell."),
    consent_by: str = typer.Option("", help="Who allowed hosted models to see these images; recorded."),
    agreement: str = typer.Option("", help="Where that permission is written down."),
    stretch: bool = typer.Option(
        False, "--stretch", help="Stretch to a square instead of padding with black."
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="A choice of this kind of source, name=value; a wrong name lists them."
    ),
    table: Path | None = typer.Option(
        None, metavar="FILE", help="Table of labels and patients, where it is not PATH/labels.csv."
    ),
    columns: list[str] = typer.Option(
        [],
        "--column",
        metavar="ROLE=NAME",
        help="What a column of it tells: file, labels, group, split, sequence or plane.",
    ),
    findings: list[Path] = typer.Option([], help="TOML files with findings of your own."),
    skip_text: bool = typer.Option(
        False, "--skip-text", help="Do not look for burned-in text (0.1 to 1 s of a core an image); recorded."
    ),
    config: Path | None = typer.Option(None, "--settings", metavar="FILE", help="TOML with [engine]."),
    engine: str = typer.Option(
        "", metavar="KIND", help="Where files are prepared: local, or ray; instead of the settings' [engine]."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
    list_kinds: bool = typer.Option(False, "--list", help="Name the kinds of source and stop."),
) -> None:
    """Reads a source into a catalogue of prepared images, 1024x1024, pixels only.

    Example: plantain ingest folder scans/ --modality chest_xray --licence open --to catalogue

    scans/ holds one folder per finding (normal/, Pneumothorax/, ...) with pictures inside, or pictures and a table
    labels.csv (or .xlsx) with the columns file, labels and maybe group (the patient) and split; columns as published
    datasets call them are known, e.g. `Image Index`, `Finding Labels`, `Patient ID`. A file that cannot be used is one
    line in catalogue/rejected.csv and stops nothing. Running it again adds what is new, and takes groups that were
    corrected. An image with text that may be somebody's name, date or number, or with a face, waits for
    `plantain run quarantine`.
    """
    if list_kinds:
        _print_kinds(as_json)
        return
    if not kind or path is None or out is None:
        missing = "KIND" if not kind else "PATH" if path is None else "--to CATALOGUE"
        raise InputError(f"ingest: {missing} is missing; as in `plantain ingest folder PATH --to CATALOGUE`")
    stated = _permission(licence, consent_by, agreement)
    source = load(kind)
    if (table is not None or columns) and not source.label_table:
        raise InputError(f"--table, --column: {kind} has tables of its own")
    asked = parse_settings(columns, "--column")
    options = SourceOptions(path, modality, Licence(licence), parse_settings(settings), table, asked)
    reader = NamingReader(
        source.reader(kind, options, load_taxonomy(findings)), one_line(dataset), one_line(version), stated
    )
    name = one_line(dataset or source.dataset or path.resolve().name)
    labels_file = (
        table or (path if path.is_dir() else path.parent) / "labels.csv" if source.label_table else None
    )
    elsewhere = load_terms(config, (), engine=engine).engine
    mode = "stretch" if stretch else "pad"
    try:
        with engine_for_threads(elsewhere) as workers:
            done = _run(reader, out, name, mode, skip_text, labels_file, as_json, workers)
    except KeyboardInterrupt:
        print(f"plantain: interrupted; what is done stays in {out}. Go on with:", file=sys.stderr)
        print(f"  {shlex.join(['plantain', *sys.argv[1:]])}", file=sys.stderr)
        raise typer.Exit(3) from None
    except (OSError, sqlite3.OperationalError) as error:
        why = getattr(error, "strerror", None) or error
        rest = "what is in it is whole, ingest again" if (out / NAME).exists() else "choose another --to"
        raise InputError(f"{out}: cannot be written ({why}); {rest}") from error
    if not (done.added or done.unchanged or done.labelled or done.regrouped or done.quarantined):
        print(f"plantain: {path}: no picture could be used", file=sys.stderr)
        raise typer.Exit(1)


def _permission(licence: str, by: str, agreement: str) -> Consent | None:
    """The stated consent, if any. Raises InputError where licence or consent is not said as it must be."""
    if licence not in tuple(Licence):
        raise InputError(f"--licence {licence!r}: choose one of {', '.join(Licence)}")
    if bool(by) != bool(agreement):
        raise InputError(
            "--consent-by, --agreement: give both, who allowed it and where that is written down"
        )
    return Consent(by, agreement) if by else None


def _run(
    reader: Reader,
    out: Path,
    name: str,
    mode: str,
    skip_text: bool,
    table: Path | None,
    as_json: bool,
    workers: EngineThread | None,
) -> Ingested:
    """Ingests under a dataset's name, writes both lists, and prints the summary.

    `table` is where labels may be told, None where this kind of source has its own.
    """
    with Catalogue.create(out) as catalogue:
        gate = PrivacyGate(catalogue, None if skip_text else open_reader())
        with _Watch(reader.count(), quiet=as_json) as observer:
            done = ingest(reader, catalogue, mode=mode, on_file=observer.file, gate=gate, engine=workers)
        if gate.reader is not None:
            _read_earlier(catalogue, gate, done)
        write_rejected(out, name, done.refused)
        write_near_duplicates(out / NEAR, done.near)
        if done.unlabelled:
            print(f"plantain: {_unlabelled(done.unlabelled, table)}", file=sys.stderr)
        for line in group_remarks(done, catalogue.crossed_splits(), takes_table=table is not None):
            print(f"plantain: {line}", file=sys.stderr)
        _report(catalogue, done, out, _why_unread(catalogue, skip_text), as_json)
    return done


def _print_kinds(as_json: bool) -> None:
    if as_json:
        print(json.dumps(kinds(), indent=2))
        return
    table = Table("kind", "reads", box=None, pad_edge=False)
    for name, summary in kinds().items():
        table.add_row(name, summary)
    print_table(table)


def _read_earlier(catalogue: Catalogue, gate: PrivacyGate, done: Ingested) -> None:
    """Reads what an earlier ingest, without the extra, put into the catalogue unread."""
    unread = catalogue.count_by("text_checked").get("0", 0)
    if unread:
        print(
            f"plantain: looking for text in {counted(unread, 'image that was', 'images that were')} never read",
            file=sys.stderr,
        )
        done.newly_quarantined += check_earlier(catalogue, gate)
        done.near = join_near_duplicates(catalogue)
        done.quarantined = [waiting.image.id for waiting in held(catalogue)]


def _why_unread(catalogue: Catalogue, skipped: bool) -> str:
    """Why images of the catalogue are unread; "" where none is."""
    unread = catalogue.count_by("text_checked").get("0", 0)
    if not unread:
        return ""
    why = "--skip-text" if skipped else why_no_reader() or "rendered or edited"
    return (
        f"burned-in text was not checked in {counted(unread, 'image')} ({why}): look for names and dates "
        f"before you share."
    )


def _unlabelled(images: int, table: Path | None) -> str:
    """That no task is made of images without a label, and where a person can tell labels."""
    how = "" if table is None else f"; tell labels in {table} (file,labels[,group,split]), and ingest again"
    made = "no task is made of " + ("it" if images == 1 else "them")
    return f"{counted(images, 'image')} without a label: {made}{how}"


def _report(catalogue: Catalogue, done: Ingested, out: Path, unread: str, as_json: bool) -> None:
    counts = {f"by_{field}": _named(catalogue.count_by(field)) for field in ("label", "split", "modality")}
    if unread:
        print(f"plantain: {unread}", file=sys.stderr)
    if as_json:
        numbers = {"images": len(catalogue), "rejected": _files(done)}
        more = {
            "added": done.added,
            "unchanged": done.unchanged,
            "labelled": done.labelled,
            "regrouped": done.regrouped,
            "ungrouped": done.ungrouped,
            "synthetic": done.synthetic,
            "tables": [asdict(table) for table in done.tables],
            "crossed_splits": dict(catalogue.crossed_splits()),
            "unlabelled": done.unlabelled,
            "near_duplicates": len(done.near),
            "left_out": {item.reason: item.count for item in done.left_out},
            "text_checked": not unread,
            "quarantined": len(done.quarantined),
            "newly_quarantined": done.newly_quarantined,
            "catalogue": str(out),
        }
        print(json.dumps({**numbers, **counts, **more}, indent=2, ensure_ascii=False))
        return
    changed = f", {done.labelled} labelled now" if done.labelled else ""
    changed += f", {done.regrouped} of another group or split now" if done.regrouped else ""
    print(
        f"{out}: {counted(len(catalogue), 'image')}, {done.added} new{changed}; "
        f"{counted(_files(done), 'file')} rejected"
    )
    for table in done.tables:
        print(table_line(table))
    if done.synthetic:
        print(
            f"{counted(done.synthetic, 'picture says', 'pictures say')} in the file to be synthetic: recorded so, and "
            f"never taken for real"
        )
    for label, count in counts["by_label"].items():
        print(f"  {count:6d}  {label}")
    if done.near:
        print(f"{counted(len(done.near), 'pair')} of near duplicates, each kept in one group: {out / NEAR}")
    for item in done.left_out:
        print(f"left out {item.count}: {item.reason}")
    if done.quarantined:
        new = f", {done.newly_quarantined} new" if done.newly_quarantined else ""
        print(
            f"{counted(len(done.quarantined), 'image')} in quarantine{new}; none takes part in a build until it "
            f"is released or masked:"
        )
        print(f"  plantain run quarantine {shlex.quote(str(out))}")
    if done.refused:
        print(f"rejected files and why: {out / REJECTED}")


def _files(done: Ingested) -> int:
    """Files that were left out, each once; a folder counts with what is in it."""
    return sum({refused.name: refused.files for refused in done.refused}.values())


def _named(counts: dict[str, int]) -> dict[str, int]:
    return {value or "none": count for value, count in counts.items()}


class _Watch:
    """Tells how far an ingest is: a bar after two seconds, plain lines without a terminal, refused files at once."""

    def __init__(self, total: int | None, *, quiet: bool) -> None:
        console = Console(stderr=True)
        self._live = console.is_terminal and not quiet
        self._bar = Progress(
            TextColumn("ingest"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]} files/s, left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("", total=total, rate="0")
        self._total, self._done, self._printed_refused = total, 0, 0
        self._reasons: Counter[str] = Counter()
        self._unprinted: Counter[str] = Counter()
        self._shown = False
        self._begun = self._printed_at = time.monotonic()

    def __enter__(self) -> _Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._bar.stop()
        for reason, count in self._unprinted.most_common(SHOWN):
            print(f"plantain: and {count} more rejected: {reason}", file=sys.stderr)
        if rest := sum(count for _, count in self._unprinted.most_common()[SHOWN:]):
            print(f"plantain: and {rest} more rejected files", file=sys.stderr)

    def file(self, refused: Refused | None) -> None:
        """One more file is done."""
        self._done += 1
        now = time.monotonic()
        rate = f"{self._done / max(now - self._begun, 1e-3):.0f}"
        self._bar.update(self._task, completed=self._done, rate=rate)
        if refused is not None:
            self._reasons[refused.reason] += 1
            if self._reasons[refused.reason] > ALIKE or self._printed_refused >= SHOWN:
                self._unprinted[refused.reason] += 1
            else:
                self._printed_refused += 1
                print(f"plantain: rejected {refused.name}: {refused.reason}", file=sys.stderr)
        if self._live and not self._shown and now - self._begun > BAR_AFTER_S:
            self._shown = True
            self._bar.start()
        elif not self._live and now - self._printed_at > PLAIN_EVERY_S:
            self._printed_at = now
            left = (
                f", {_left(self._total - self._done, now - self._begun, self._done)} left"
                if self._total
                else ""
            )
            line = f"plantain: {self._done}/{self._total or '?'} files, {rate} files/s{left}"
            print(line, file=sys.stderr, flush=True)


def _left(files: int, seconds: float, done: int) -> str:
    """The time that so many files will take, as h:mm:ss, at the rate so far."""
    minutes, rest = divmod(round(max(files, 0) * seconds / done), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
