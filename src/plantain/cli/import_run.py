"""`plantain import`: read a published release or a table of edits into a run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, PairColumns, PairConstants, parse_settings
from plantain.cli.terminal.tables import print_json
from plantain.records import InputError
from plantain.records.messages import command_line, counted, next_line, typed


def import_run(
    path: Path = typer.Argument(
        ...,
        metavar="PATH",
        help="A release, a Med-Banana tree, a table of pairs, or a benchmark's output folder.",
    ),
    run: Path = typer.Option(..., metavar="DIR", help="New folder for the run."),
    layout: str = typer.Option("", metavar="NAME", help="release or pairs; default: recognised by content."),
    column: PairColumns = None,
    constant: PairConstants = None,
    originals: Path | None = typer.Option(
        None, metavar="PATH", help="Your originals: a catalogue or run; of pairs a folder."
    ),
    as_json: AsJson = False,
) -> None:
    """Read a release or a table of edits into a run, to view, report, judge or export it. Missing fields stay unknown.

    Example: plantain import release --run runs/theirs
    """
    if layout not in ("", "release", "pairs"):
        raise InputError(f"--layout {layout}: release or pairs")
    if layout == "pairs" or (not layout and _is_table(path)):
        roles = parse_settings(column or (), "--column"), parse_settings(constant or ())
        _pairs(path, run, *roles, originals, as_json=as_json)
        return
    if column or constant:
        raise InputError(f"{'--column' if column else '--set'} belongs to a table of pairs")
    from plantain.release.importing.importing import import_release
    from plantain.release.importing.published import PublishedTree
    from plantain.release.importing.reading import OurRelease

    tree = path.is_dir() and not OurRelease.recognised(path) and PublishedTree.recognised(path)
    if tree and originals is not None:
        again = command_line("import", path, "--run", run, "--layout", "pairs", "--originals", originals)
        raise InputError(
            f"--originals: a tree names its originals, so a folder of them is joined by name: {again}"
        )
    summary = import_release(path, run, originals)
    if as_json:
        print_json(summary)
        return
    print(
        f"{run}: {counted(summary.tasks, 'task')}, {counted(summary.attempts, 'attempt')}, "
        f"{counted(summary.images, 'image')} ({summary.kind})"
    )
    if summary.signed:
        print(
            f"{counted(summary.signed, 'image was', 'images were')} imported without its signed manifest; check the "
            f"signatures: {command_line('verify', path)}"
        )
    if summary.originals or summary.without_original:
        print(
            f"{counted(summary.originals, 'original')} imported, {summary.without_original} missing"
            + ("; pass your own with --originals CATALOGUE" if summary.without_original else "")
        )
    if summary.missing:
        print(
            f"{counted(summary.missing, 'image is', 'images are')} named but not included; the hash is recorded"
        )
    if summary.kind == "plantain":
        print(f"checksums of the release are compared by: {command_line('verify', path)}")
    print(next_line("show", run))


def _is_table(path: Path) -> bool:
    """Return True for a file, or a folder with a table or a benchmark's edits that is not a release."""
    from plantain.release.importing.benchmarks import is_benchmark
    from plantain.release.importing.pair_rows import tables_in
    from plantain.release.importing.reading import OurRelease

    if not path.is_dir() or OurRelease.recognised(path):
        return path.is_file()
    return bool(tables_in(path)) or is_benchmark(path)


def _pairs(
    path: Path,
    run: Path,
    columns: dict[str, str],
    constants: dict[str, str],
    originals: Path | None,
    *,
    as_json: bool,
) -> None:
    from plantain.pixels.decode import one_line
    from plantain.release.importing.pair_rows import CALLED
    from plantain.release.importing.pairs import import_pairs

    summary = import_pairs(path, run, columns=columns, constants=constants, originals=originals)
    if as_json:
        print_json(summary)
        return
    names = {"none": "without one"}
    published = ", ".join(f"{n} {names.get(one, one)}" for one, n in sorted(summary.published.items()))
    print(
        f"{run}: {counted(summary.tasks, 'edit')} of {counted(summary.rows, 'row')}; published verdicts: {published}"
    )
    if summary.without_original:
        print(
            f"{summary.without_original} without their original: no judge can judge them; pass --originals DIR"
        )
    if summary.without_instruction:
        print(
            f"{counted(summary.without_instruction, 'row')} without an instruction: the finding's name is used"
        )
    for finding, n in summary.unknown.most_common(5):
        of = f"of the unknown finding {finding}" if finding else "without a finding"
        listed = " (plantain findings lists those known)" if finding else ""
        print(f"{counted(n, 'edit')} {of}: offline/instruments cannot judge them{listed}")
    if summary.resized:
        print(f"{counted(summary.resized, 'edit was', 'edits were')} resized to the shape of the original")
    if summary.guessed:
        words = ", ".join(f"{n} {direction}" for direction, n in sorted(summary.guessed.items()))
        print(f"direction inferred from the instruction: {words}")
    if summary.unused:
        unused = [one_line(name)[:40] for name in summary.unused[:10]]
        use = f"to use one: --column {shlex.quote(f'ROLE={unused[0]}')}"
        print(f"columns not used: {', '.join(unused)}; {use}; roles: {', '.join(CALLED)}")
    if summary.rejected is not None:
        n = sum(summary.left_out.values())
        print(f"left out {counted(n, 'row')}; each with its reason: {summary.rejected}")
    for reason, n in summary.left_out.most_common(5):
        more = f" and {n - 1} more" if n > 1 else ""
        print(f"  row {summary.first[reason]}{more}: {reason}")
    if summary.unknown.total() == summary.tasks and len(summary.unknown) == 1 and not summary.unknown[""]:
        near = re.search(r"\(nearest: (.*)\)$", next(iter(summary.unknown)))
        again = typed.get().replace(shlex.join(["--run", str(run)]), shlex.join(["--run", f"{run}-2"]))
        print(f"next: {again} --set {shlex.quote('finding=' + (near[1] if near else 'FINDING'))}")
    elif summary.published["none"] > max(summary.without_original, summary.unknown[""]):
        if decided := summary.tasks - summary.published["none"]:
            print(
                f"--decisive lets the judge decide the {counted(decided, 'edit')} with a published verdict, too"
            )
        print(next_line("judge", "rejudge", run, "--judge", "offline/instruments", "--decisive"))
    else:
        print(next_line("show", run))
