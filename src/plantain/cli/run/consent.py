"""`plantain run consent` and `withdraw`: the images that a run sent, and the removal of images."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import filterfalse
from pathlib import Path
from typing import Any, Literal

import orjson
import typer

from plantain.bench.benchmark.native_format import asked_samples, is_benchmark, withdraw_from_benchmark
from plantain.catalogue.near import NEAR, join_near_duplicates, write_near_duplicates
from plantain.catalogue.preview import write_preview
from plantain.catalogue.quarantine import held
from plantain.catalogue.store import NAME, Catalogue
from plantain.catalogue.withdrawal import WithdrawnImages, asked_images, cut_rejected, withdraw_from_catalogue
from plantain.cli.terminal.options import AsJson, DryRun, RunArgument
from plantain.cli.terminal.tables import print_json
from plantain.journal import JournalReader
from plantain.journal.sending import connections, sent_by_address, sent_with_sources
from plantain.journal.withdrawal import Extent
from plantain.pipeline.recipe import load_recipe
from plantain.records import InputError, SourceImage, Withdrawal
from plantain.records.messages import (
    COMMANDS,
    command_line,
    counted,
    init_line,
    next_line,
    settings_typed,
    suggest,
)
from plantain.release.withdraw import (
    WithdrawnRun,
    concerned,
    is_bench_run,
    is_run,
    names_of,
    own_folders,
    withdraw_from_run,
)
from plantain.review.study import open_study
from plantain.review.withdrawing import cases_with, is_study, withdraw_from_study
from plantain.runs.engine import CLUSTERS
from plantain.train.finished import DONE, trainings


def consent(run: RunArgument, as_json: AsJson = False) -> None:
    """List the images that left this machine, by dataset, address and agreement.

    The SHA-256 of the sent bytes and the connected IP address (or a proxy's) are recorded before each request. Local
    models are not listed. Workers of a Ray cluster count as the owner's machines: one line names the cluster.

    Example: plantain run consent runs/cxr-pilot
    """
    with JournalReader.open(run) as reader:
        ips = connections(reader)
        cluster = reader.meta(CLUSTERS)
        summary = sent_by_address(reader)
        if as_json:
            for line in summary:
                line["connected_to"] = ips.get(str(line["address"]), [])
            _print_json(reader, summary, cluster)
            return
    if cluster is not None:
        print(
            f"images were sent to workers of the Ray cluster at {cluster}, which count as the owner's machines"
        )
    if not summary:
        print("nothing was sent to a provider" if cluster else "nothing was sent beyond this machine")
        print(next_line(*(("bench", "table") if is_bench_run(run) else ("report",)), run))
        return
    for line in summary:
        known = ", ".join(ips.get(str(line["address"]), []))
        connected = f" (connected to {known})" if known else ""
        print(
            f"{line['model']} at {line['address']}{connected}, under {line['agreement']}:\n"
            f"  {line['dataset']} ({line['licence'] or 'licence unknown'}): {counted(line['images'], 'image')}, "
            f"{counted(line['files'], 'file')} in {counted(line['requests'], 'request')} from "
            f"{line['from']} to {line['to']}"
        )
    print(next_line("run", "consent", run, "--json"))


def _print_json(reader: JournalReader, summary: list[dict[str, object]], cluster: str | None) -> None:
    """Print one JSON object row by row: all rows may not fit in memory."""
    rest = orjson.dumps({"summary": summary, "cluster": cluster}, option=orjson.OPT_INDENT_2).decode()
    print('{\n  "sent": [', end="")
    for number, (sent, dataset, licence) in enumerate(sent_with_sources(reader)):
        row = orjson.dumps({**asdict(sent), "dataset": dataset, "licence": licence}).decode()
        print(f"{',' if number else ''}\n    {row}", end="")
    print(f"\n  ],{rest[1:]}")


_MOST = 20
"""Names shown on one line."""

_NEXT = {"run": "report", "bench run": "bench table", "benchmark": "bench check"}
_NEXT |= {"study": "review results", "catalogue": "init"}
"""Kind of the first folder -> the usual next command."""


def withdraw(
    folders: list[Path] = typer.Argument(
        ..., metavar="DIR...", help="Runs, catalogues, benchmarks, studies or trainings."
    ),
    group: list[str] | None = typer.Option(None, metavar="ID", help="A patient or study; repeatable."),
    image: list[str] | None = typer.Option(None, metavar="ID", help="An image; repeatable."),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Delete patients, studies or images with their tasks, edits, verdicts and readers' answers.

    The source image of a later turn (`plantain show` prints its id) is deleted with that turn and those after it.

    Name all folders in one command: the catalogue knows the groups of near duplicates, and the run knows its samples
    in a benchmark and its reader studies. Affected releases are listed, and trained models, which cannot forget.

    Example: plantain run withdraw runs/cxr-pilot catalogue --group patient:10000032 --dry-run
    """
    asked = Withdrawal(frozenset(group or ()), frozenset(image or ()))
    if not asked.names:
        raise InputError("run withdraw: name what to withdraw: --group ID or --image ID")
    of: dict[str, list[Path]] = {kind: [] for kind in ("run", "catalogue", "benchmark", "study", "training")}
    for folder in folders:
        of[_kind(folder)].append(folder)
    catalogues = {folder: _in_catalogue(folder, asked) for folder in of["catalogue"]}
    taken = [image for found in catalogues.values() for image in found.images]
    builds = {folder: concerned(folder, asked, taken) for folder in of["run"]}
    tasks = {task for run in builds.values() if run is not None for task in run.tasks}
    benchmarks = {folder: asked_samples(folder, asked, tasks) for folder in of["benchmark"]}
    samples = {found.name: found.ids for found in benchmarks.values()}
    runs = {folder: concerned(folder, asked, taken, samples) for folder in of["run"]}
    known = frozenset[str]().union(
        *(found.known for found in (*catalogues.values(), *runs.values(), *benchmarks.values()) if found)
    )
    names = set(asked.names).union(*(found.ids for found in benchmarks.values()))
    names.update(name for found in runs.values() if found for name in found.tasks | found.image_ids)
    studies = {path: cases_with(path, names) for path in of["study"]}
    known |= {
        name for cases in studies.values() for one in cases for name in (one.source, one.image, one.cluster)
    }
    if not asked.names <= known:
        raise _unknown(folders, asked, known)
    of_runs = {
        Path(path) for found in runs.values() if found for path in found.releases if is_study(Path(path))
    }
    trained = {folder: _learned(folder, runs, samples, tasks) for folder in of["training"]}
    withdrawn = [
        _of_study(folder, names, dry_run) for folder in sorted({p.resolve() for p in studies} | of_runs)
    ]
    if not dry_run:
        concerned_runs = {folder: found for folder, found in runs.items() if found is not None}
        # Folders that depend on another's record go first, so that a repeated command still finds the names.
        for folder in filter(is_bench_run, concerned_runs):
            withdraw_from_run(folder, asked, concerned_runs[folder])
        for sampled in benchmarks.values():
            withdraw_from_benchmark(sampled)
        for folder in filterfalse(is_bench_run, concerned_runs):
            withdraw_from_run(folder, asked, concerned_runs[folder])
        for folder, gone in catalogues.items():
            _clear_catalogue(folder, asked, gone.images)
    rows: list[dict[str, Any]] = [
        *(
            {"folder": f, "kind": "catalogue", "images": len(c.images), "before": c.before}
            for f, c in catalogues.items()
        ),
        *({"folder": f, "kind": "run", **_of_run(found)} for f, found in runs.items()),
        *({"folder": f, "kind": "benchmark", "samples": found.ids} for f, found in benchmarks.items()),
        *withdrawn,
        *({"folder": f, "kind": "training", "models": models} for f, models in trained.items()),
    ]
    failed = any(row["problem"] for row in withdrawn)
    if as_json:
        one_group = next(iter(asked.groups)) if len(asked.names) == len(asked.groups) == 1 else ""
        named = {"group": one_group, "groups": sorted(asked.groups), "asked_images": sorted(asked.images)}
        print_json({**named, "dry_run": dry_run, "folders": [{"before": False, **row} for row in rows]})
        return int(failed)
    print(*(_line(row, dry_run) for row in rows), sep="\n")
    for folder, gone in catalogues.items():
        if gone.alike:
            print(
                f"{folder}: near duplicates of it stay: {', '.join(gone.alike[:_MOST])}; withdraw them as well?"
            )
    for row in rows:
        _print_elsewhere(row)
    for folder, found in runs.items():
        _print_catalogue(folder, asked, found.image_ids if found else frozenset(), catalogues)
    kind = "bench run" if of["run"][:1] == folders[:1] and is_bench_run(folders[0]) else _kind(folders[0])
    first = next((row for row in rows if row["folder"] == folders[0]), {})
    if first.get("releases") and not (failed or dry_run):
        print(next_line("export", folders[0], "--to", f"{first['releases'][0]}-2", "--licence", "TERMS"))
    elif kind in _NEXT and not (failed or dry_run):
        line = next_line(*_NEXT[kind].split(), folders[0])
        print(init_line(folders[0]) if kind == "catalogue" else line)
    return int(failed)


def _of_study(folder: Path, gone: Collection[str], dry_run: bool) -> dict[str, Any]:
    """Withdraw from a study; return its row. The problem is named where that fails, and the other folders follow."""
    row: dict[str, Any] = {"folder": folder, "kind": "study", "cases": [], "problem": ""}
    try:
        row["cases"] = [case.id for case in cases_with(folder, gone)]
        if not dry_run:
            withdraw_from_study(folder, gone)
    except InputError as error:
        row["problem"] = str(error)
    return row


def _of_run(found: WithdrawnRun | None) -> dict[str, object]:
    found = found or WithdrawnRun(Extent())
    more = {name: getattr(found, name) for name in ("released_as", "batch_jobs", "before")}
    releases = [path for path in found.releases if not is_study(Path(path))]
    return {**asdict(found.extent), **more, "releases": releases}


def _kind(folder: Path) -> Literal["run", "catalogue", "benchmark", "study", "training"]:
    """Return the kind of a folder. Raise InputError if it is none of them."""
    if is_run(folder):
        return "run"
    if (folder / NAME).is_file():
        return "catalogue"
    if is_benchmark(folder):
        return "benchmark"
    if is_study(folder):
        return "study"
    if folder.is_dir() and next(folder.rglob(DONE), None) is not None:
        return "training"
    raise InputError(
        f"{folder}: not a run, a catalogue, a benchmark in plantain's own format, a study or a training"
    )


def _learned(
    folder: Path,
    runs: Mapping[Path, WithdrawnRun | None],
    samples: Mapping[str, Collection[str]],
    tasks: Collection[str],
) -> list[Path]:
    """Return models trained on withdrawn examples, or on an affected release if examples are not recorded."""
    sources = {Path(path).name for run in runs.values() if run is not None for path in run.releases}
    gone = {*tasks, *(sample for ids in samples.values() for sample in ids)}
    return [
        trained
        for trained, source, examples in trainings(folder)
        if source in sources | samples.keys() and (examples is None or examples & gone or not gone)
    ]


def _in_catalogue(folder: Path, asked: Withdrawal) -> WithdrawnImages:
    with Catalogue.open(folder) as catalogue:
        return asked_images(catalogue, asked)


def _print_catalogue(run: Path, asked: Withdrawal, image_ids: frozenset[str], done: Collection[Path]) -> None:
    """Name the catalogue of a run's recipe if it contains the images and was not withdrawn from."""
    with JournalReader.open(run) as reader:
        recipe = settings_typed(reader.meta(COMMANDS), "build")
    with suppress(InputError):  # the run has no recipe, or it or its catalogue is no longer there
        root = load_recipe(Path(*recipe[1:])).data.catalogue.resolve()
        there = _in_catalogue(root, Withdrawal(asked.groups, asked.images | image_ids))
        if there.images and root not in map(Path.resolve, done):
            shown = root.relative_to(Path.cwd()) if root.is_relative_to(Path.cwd()) else root
            groups = [word for name in sorted(asked.groups & there.known) for word in ("--group", name)]
            single = Withdrawal(asked.groups).naming
            names = [word for one in there.images if not single(one) for word in ("--image", one.id)]
            print(
                f"{shown} still contains it: {command_line('run', 'withdraw', run, shown, *groups, *names)}"
            )


def _clear_catalogue(folder: Path, asked: Withdrawal, images: Sequence[SourceImage]) -> None:
    """Remove the images from a catalogue and from the lists next to it."""
    withdraw_from_catalogue(folder, asked)
    with Catalogue.create(folder) as catalogue:
        write_near_duplicates(folder / NEAR, join_near_duplicates(catalogue))
        write_preview(catalogue, list(held(catalogue)))
    cut_rejected(folder, images)


def _unknown(folders: Sequence[Path], asked: Withdrawal, known: frozenset[str]) -> InputError:
    """Return an error that names the unknown groups and images, with the nearest known name."""
    there = set[str | None]()
    for folder in folders:
        if is_run(folder):
            there.update(*names_of(folder))
        elif is_study(folder):
            there.update(
                name for one in open_study(folder).cases for name in (one.image, one.source, one.cluster)
            )
        elif (folder / NAME).is_file():
            with Catalogue.open(folder) as catalogue:
                there.update(name for image, _, group in catalogue.own_groups() for name in (image, group))
    names = sorted(name for name in there if name)
    missing = sorted(asked.names - known)
    near = suggest(missing[0], names, otherwise=f"known: {', '.join(names[:_MOST]) or 'none'}")
    places = ", ".join(map(str, folders))
    return InputError(f"{places}: no group or image {', '.join(map(repr, missing[:_MOST]))}; {near}")


def _line(row: dict[str, Any], dry_run: bool) -> str:
    """Return one folder's row as a line."""
    if row.get("before"):
        return f"{row['folder']}: already withdrawn"
    if row["kind"] == "training":
        return f"{row['folder']}: {counted(len(row['models']), 'model')} learned from it"
    if row.get("problem"):
        return f"{row['folder']}: this study may contain images of it: {row['problem']}; delete it, or withdraw again"
    if row["kind"] == "study":
        taken = counted(len(row["cases"]), "case") + " with the answers about them"
    elif row["kind"] == "benchmark":
        taken = counted(len(row["samples"]), "sample")
    else:
        taken = counted(row["images"], "image")
    if row["kind"] == "run":
        counts = {"tasks": "task", "attempts": "attempt", "calls": "call", "blobs": "file"}
        taken = ", ".join([taken, *(counted(row[key], name) for key, name in counts.items())])
    return f"{row['folder']}: {'would remove' if dry_run else 'removed'} {taken}"


def _print_elsewhere(row: dict[str, Any]) -> None:
    """Print releases, studies, batch jobs and models that also contain withdrawn data."""
    if row.get("releases"):
        names = f" as {', '.join(row['released_as'][:_MOST])}" if row["released_as"] else ""
        print(f"{row['folder']}: these releases contain parts of it{names}:")
        for path in row["releases"]:
            print(f"  {path}")
        print("  export them again, and ask everyone who has a copy to delete it", file=sys.stderr)
    for own in own_folders(Path(row["folder"])) if row["kind"] == "run" else ():
        print(
            f"{row['folder']}: {own.name} in it is a folder of its own and was not changed: name it as well"
        )
    if row.get("batch_jobs"):
        print(
            f"{row['folder']}: files of batch jobs that contain it could not be deleted at the provider; delete "
            f"them there, or open the run again with its models: {', '.join(row['batch_jobs'])}"
        )
    for path in row.get("models", ()):
        print(f"  {path}: trained on withdrawn data: delete it and train again")
