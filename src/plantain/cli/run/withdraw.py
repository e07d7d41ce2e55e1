"""`plantain run withdraw`: images of a patient or single ones, and what came of them, out of runs and catalogues."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from enum import Enum
from itertools import filterfalse
from pathlib import Path
from typing import Annotated, cast

import orjson
import typer

from plantain.bench.benchmark.withdrawal import (
    WithdrawnSamples,
    asked_samples,
    is_benchmark,
    withdraw_from_benchmark,
)
from plantain.catalogue.near import NEAR, join_near_duplicates, write_near_duplicates
from plantain.catalogue.preview import write_preview
from plantain.catalogue.quarantine import held
from plantain.catalogue.store import NAME, Catalogue
from plantain.catalogue.withdrawal import (
    WithdrawnImages,
    asked_images,
    cut_rejected,
    withdraw_from_catalogue,
)
from plantain.cli.terminal.application import application
from plantain.journal.withdrawal import Extent
from plantain.records import InputError, SourceImage, Withdrawal
from plantain.records.counts import counted
from plantain.records.suggestions import suggest
from plantain.release.withdraw import (
    WithdrawnRun,
    concerned,
    is_bench_run,
    is_run,
    names_of,
    withdraw_from_run,
)
from plantain.train.finished import DONE, trainings

app = application()

_MOST = 20
"""Names that one line holds."""


@app.command(
    epilog="Example: plantain run withdraw runs/cxr-pilot catalogue --group patient:10000032 --dry-run"
)
def withdraw(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Runs, catalogues, benchmarks, trainings: any of them."),
    ],
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="ID",
            help="A patient or study, as the catalogue or a release of the run calls it.",
        ),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            "--image", metavar="ID", help="A single image, likewise; for one without a known patient."
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option("--images", metavar="FILE", help="A text file of such images, one a line.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Take patients, studies or images out for good, with tasks, edits, verdicts. Names releases that hold some of it.

    Name everything that there is in one command: the catalogue knows groups that near duplicates were joined under,
    the run knows which samples of a benchmark were made of it. Trained models cannot forget; they are named.
    """
    listed = [] if images is None else _listed(images)
    asked = Withdrawal(frozenset(group or ()), frozenset((*(image or ()), *listed)))
    if not asked.names:
        raise InputError("run withdraw: name what to withdraw: --group ID, --image ID or --images FILE")
    kinds = {folder: _kind(folder) for folder in folders}
    of = {kind: [folder for folder in folders if kinds[folder] is kind] for kind in FolderKind}
    catalogues = {folder: _in_catalogue(folder, asked) for folder in of[FolderKind.CATALOGUE]}
    taken = [image for found in catalogues.values() for image in found.images]
    builds = {folder: concerned(folder, asked, taken) for folder in of[FolderKind.RUN]}
    tasks = {task for run in builds.values() if run is not None for task in run.tasks}
    benchmarks = {folder: asked_samples(folder, asked, tasks) for folder in of[FolderKind.BENCHMARK]}
    samples = {found.name: found.ids for found in benchmarks.values()}
    runs = {folder: concerned(folder, asked, taken, samples) for folder in of[FolderKind.RUN]}
    known = frozenset[str]().union(
        *(found.known for found in (*catalogues.values(), *runs.values(), *benchmarks.values()) if found)
    )
    if not asked.names <= known:
        raise _unknown(folders, asked, known)
    trained = {folder: _learned(folder, runs, samples, tasks) for folder in of[FolderKind.TRAINING]}
    if not dry_run:
        # Whoever is known only by another's word goes before that other: a second call still knows what is meant.
        for folder in filter(is_bench_run, runs):
            _take(folder, asked, runs[folder])
        for sampled in benchmarks.values():
            withdraw_from_benchmark(sampled)
        for folder in filterfalse(is_bench_run, runs):
            _take(folder, asked, runs[folder])
        for folder, gone in catalogues.items():
            _clear_catalogue(folder, asked, gone.images)
    folder_rows = [_of_catalogue(folder, gone) for folder, gone in catalogues.items()]
    folder_rows += [_of_run(folder, found) for folder, found in runs.items()]
    folder_rows += [_of_benchmark(folder, sampled) for folder, sampled in benchmarks.items()]
    folder_rows += [_of_training(folder, models) for folder, models in trained.items()]
    if as_json:
        one_group = next(iter(asked.groups)) if len(asked.names) == len(asked.groups) == 1 else ""
        named = {"group": one_group, "groups": sorted(asked.groups), "asked_images": sorted(asked.images)}
        document = {**named, "dry_run": dry_run, "folders": folder_rows}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    for one in folder_rows:
        print(_line(one, dry_run))
    for folder, gone in catalogues.items():
        if gone.alike:
            print(
                f"{folder}: near duplicates of it stay: {', '.join(gone.alike[:_MOST])}; withdraw them as well?"
            )
    _name_releases(runs)
    _name_jobs(runs)
    _name_models(trained)


def _listed(path: Path) -> list[str]:
    """The lines of a file that are not empty. Raises InputError where it is none, or holds nothing."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--images: {path}: cannot be read as text ({error})") from error
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise InputError(f"--images: {path}: names no image")
    return names


def _take(folder: Path, asked: Withdrawal, found: WithdrawnRun | None) -> None:
    if found is not None:
        withdraw_from_run(folder, asked, found)


class FolderKind(Enum):
    """What a folder can be."""

    RUN, CATALOGUE, BENCHMARK, TRAINING = range(4)


def _kind(folder: Path) -> FolderKind:
    """Raises InputError for any other folder."""
    if is_run(folder):
        return FolderKind.RUN
    if (folder / NAME).is_file():
        return FolderKind.CATALOGUE
    if is_benchmark(folder):
        return FolderKind.BENCHMARK
    if folder.is_dir() and next(folder.rglob(DONE), None) is not None:
        return FolderKind.TRAINING
    raise InputError(f"{folder}: not a run, a catalogue, a benchmark in plantain's own format or a training")


def _learned(
    folder: Path,
    runs: Mapping[Path, WithdrawnRun | None],
    samples: Mapping[str, Collection[str]],
    tasks: Collection[str],
) -> list[Path]:
    """Models that learned from what goes; where a training tells no examples, from a release that holds some of it."""
    sources = {Path(path).name for run in runs.values() if run is not None for path in run.releases}
    gone = {*tasks, *(sample for ids in samples.values() for sample in ids)}
    return [
        learned.folder
        for learned in trainings(folder)
        if learned.source in sources | samples.keys()
        and (learned.examples is None or learned.examples & gone or not gone)
    ]


def _in_catalogue(folder: Path, asked: Withdrawal) -> WithdrawnImages:
    with Catalogue.open(folder) as catalogue:
        return asked_images(catalogue, asked)


def _clear_catalogue(folder: Path, asked: Withdrawal, images: Sequence[SourceImage]) -> None:
    """The images, and the lists beside the catalogue that could name them."""
    withdraw_from_catalogue(folder, asked)
    with Catalogue.create(folder) as catalogue:
        write_near_duplicates(folder / NEAR, join_near_duplicates(catalogue))
        write_preview(catalogue, list(held(catalogue)))
    cut_rejected(folder, images)


def _unknown(folders: Sequence[Path], asked: Withdrawal, known: frozenset[str]) -> InputError:
    """One line that names what nobody knows, with the nearest that there is; nothing was taken."""
    groups, images = _names(folders)
    lines = []
    for what, names, there in (("group", asked.groups, groups), ("image", asked.images, images)):
        missing = sorted(names - known)
        if missing:
            rest = f" and {len(missing) - _MOST} more" if len(missing) > _MOST else ""
            several = "s" if len(missing) > 1 else ""
            lines.append(
                f"no {what}{several} {', '.join(map(repr, missing[:_MOST]))}{rest}; {_near(missing[0], there, images)}"
            )
    return InputError(f"{', '.join(map(str, folders))}: {'; '.join(lines)}")


def _near(name: str, there: Sequence[str], images: Sequence[str]) -> str:
    """The nearest name that there is, else some of those."""
    if not images:
        return "no image is left there"
    if not there:
        return "none of its images has a group: withdraw them with --image"
    known = f"known: {', '.join(there[:_MOST])}{', ...' if len(there) > _MOST else ''}"
    return suggest(name, there, otherwise=known)


def _names(folders: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Groups and images that the folders know."""
    groups, images = set[str](), set[str]()
    for folder in folders:
        if is_run(folder):
            of_run = names_of(folder)
            groups.update(of_run[0])
            images.update(of_run[1])
        elif (folder / NAME).is_file():
            with Catalogue.open(folder) as catalogue:
                for image_id, _, group in catalogue.own_groups():
                    images.add(image_id)
                    groups.update((group,) if group else ())
    return sorted(groups), sorted(images)


def _of_catalogue(folder: Path, found: WithdrawnImages) -> dict[str, object]:
    return {"folder": str(folder), "kind": "catalogue", "images": len(found.images), "before": found.before}


def _of_run(folder: Path, found: WithdrawnRun | None) -> dict[str, object]:
    found = found or WithdrawnRun(Extent())
    return {
        "folder": str(folder),
        "kind": "run",
        **asdict(found.extent),
        "released_as": list(found.released_as),
        "releases": list(found.releases),
        "batch_jobs": list(found.batch_jobs),
        "before": found.before,
    }


def _of_benchmark(folder: Path, found: WithdrawnSamples) -> dict[str, object]:
    return {"folder": str(folder), "kind": "benchmark", "samples": list(found.ids), "before": False}


def _of_training(folder: Path, models: Sequence[Path]) -> dict[str, object]:
    return {
        "folder": str(folder),
        "kind": "training",
        "models": [str(path) for path in models],
        "before": False,
    }


def _line(row: dict[str, object], dry_run: bool) -> str:
    if row["before"]:
        return f"{row['folder']}: withdrawn before; nothing of it is left"
    word = "would take out" if dry_run else "took out"
    if row["kind"] == "benchmark":
        return f"{row['folder']}: {word} {counted(len(cast('list[str]', row['samples'])), 'sample')}"
    if row["kind"] == "training":
        return f"{row['folder']}: {counted(len(cast('list[str]', row['models'])), 'model')} learned from it"
    more = ""
    if row["kind"] == "run":
        more = (
            f", {counted(row['tasks'], 'task')}, {counted(row['attempts'], 'attempt')}, "
            f"{counted(row['calls'], 'call')}, {counted(row['blobs'], 'file')}"
        )
    return f"{row['folder']}: {word} {counted(row['images'], 'image')}{more}"


def _name_jobs(runs: dict[Path, WithdrawnRun | None]) -> None:
    for folder, found in runs.items():
        if found is not None and found.batch_jobs:
            print(
                f"{folder}: files of batch jobs that hold it could not be deleted at the provider; delete them "
                f"there, or open the run again with its models: {', '.join(found.batch_jobs)}"
            )


def _name_releases(runs: dict[Path, WithdrawnRun | None]) -> None:
    for folder, found in runs.items():
        if found is None or not found.releases:
            continue
        names = f" as {', '.join(found.released_as[:20])}" if found.released_as else ""
        print(f"{folder}: these releases hold parts of it{names}:")
        for path in found.releases:
            print(f"  {path}")
        print("  export them again, and ask everyone who has a copy to delete it", file=sys.stderr)


def _name_models(trained: Mapping[Path, Sequence[Path]]) -> None:
    for path in (path for models in trained.values() for path in models):
        print(f"  {path}: learned from what was withdrawn, and cannot forget it: delete it and train again")
