"""`plantain bench prepare`: a benchmark from raw pairs."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from pathlib import Path

import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.concepts import read_concepts, store_concepts, write_concepts
from plantain.bench.prepare.describers import (
    BY_OWNER,
    PUBLISHED,
    PUBLISHED_TASKS,
    listed_procedures,
    propose_procedures,
)
from plantain.bench.prepare.pairs import COLUMNS, NEEDED, SIDE, TABLE, PairRules
from plantain.bench.prepare.preparing import PreparedBenchmark, PreparePlan, prepare_benchmark
from plantain.bench.prepare.regions_proposed import DifferenceProposer, GroundedProposer, RegionProposer
from plantain.cli.bench.studies import take_regions
from plantain.cli.terminal.options import AsJson, EngineKind, Seed, SettingsFile
from plantain.cli.terminal.progress import print_end, progress_bar
from plantain.cli.terminal.tables import print_json
from plantain.privacy.text import open_reader, why_no_reader
from plantain.records import InputError
from plantain.records.messages import counted, next_line
from plantain.runs.terms import Terms, load_terms


class Regions(StrEnum):
    """Method that proposes regions."""

    DIFFERENCE = "difference"
    GROUNDED_SAM = "grounded-sam"
    NONE = "none"


class Keep(StrEnum):
    """Material that is left out by default."""

    UNALIGNED, TEXT, FACES, URLS = "unaligned", "text", "faces", "urls"


def prepare(
    context: typer.Context,
    raw: Path | None = typer.Argument(None, metavar="RAW", help=f"Folder with {TABLE}, before/ and after/."),
    out: Path | None = typer.Option(None, "--to", "--out", metavar="DIR", help="A new folder."),
    describer: str = typer.Option(BY_OWNER, metavar="MODEL", help="Describes pairs; hosted or as-told."),
    regions: Regions = typer.Option(Regions.DIFFERENCE, help="Method that proposes regions of interest."),
    detector: str = typer.Option("base", help="GroundingDINO of Grounded-SAM: tiny, base or a folder."),
    segmenter: str = typer.Option("huge", help="SAM of Grounded-SAM: base, large, huge or a folder."),
    side: int = typer.Option(SIDE, min=64, max=4096, help="Longest side in pixels."),
    keep: list[Keep] | None = typer.Option(
        None, help="Keep (and mark) unaligned pairs, images with identifying text or faces, urls; repeatable."
    ),
    settings: SettingsFile = None,
    engine: EngineKind = "",
    run: Path | None = typer.Option(
        None, metavar="DIR", help="Run of a hosted describer; default: OUT.calls."
    ),
    seed: Seed = 0,
    procedures: str = typer.Option(
        "", metavar="ORGAN", help="List procedures of an organ, all or published."
    ),
    study: Path | None = typer.Option(
        None, metavar="STUDY", help="RAW is a benchmark: store its readers' regions."
    ),
    concepts: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="RAW is a benchmark: write its key concepts as CSV, or read an edited file.",
    ),
    as_json: AsJson = False,
) -> int:
    """Align raw pairs, describe them, propose regions, and write a benchmark in plantain's own format.

    Pairs that cannot be aligned, or whose images may identify a patient, are listed in rejected.csv with the reason.

    Example: plantain bench prepare raw --to benches/hands
    """
    terms = load_terms(settings, (describer,), engine=engine)
    if procedures:
        return _print_procedures(context, procedures, terms, run, seed, as_json)
    if concepts is not None:
        return _concepts(raw, concepts, as_json)
    if study is not None:
        return _take_chosen(raw, study, as_json)
    if raw is None or out is None:
        columns = ", ".join(f"{name} (needed)" if name in NEEDED else name for name in COLUMNS)
        raise InputError(f"bench prepare: give RAW and --to; RAW has before/, after/ and {TABLE}: {columns}")
    kept = frozenset(keep or ())
    reader = None if Keep.TEXT in kept else open_reader()
    if reader is None and Keep.TEXT not in kept:
        print(f"plantain: warning: text in images is not detected: {why_no_reader()}", file=sys.stderr)
    rules = PairRules(side, Keep.UNALIGNED in kept, Keep.TEXT in kept, Keep.FACES in kept, reader)
    plan = PreparePlan(
        out.name,
        rules,
        terms,
        run or out.with_name(f"{out.name}.calls"),
        _proposer(regions, detector, segmenter),
        seed,
        regions is not Regions.NONE,
        Keep.URLS in kept,
    )
    with progress_bar("pairs") as progress:
        made = asyncio.run(prepare_benchmark(raw, out, plan, progress))
    if as_json:
        print_json(_as_dict(made))
    else:
        _print_made(made, out)
    return print_end(context, made.summary)


def _proposer(regions: Regions, detector: str, segmenter: str) -> RegionProposer:
    return GroundedProposer(detector, segmenter) if regions is Regions.GROUNDED_SAM else DifferenceProposer()


def _print_procedures(
    context: typer.Context, organ: str, terms: Terms, run: Path | None, seed: int, as_json: bool
) -> int:
    """Print a list of procedures, with the additions of a hosted describer."""
    listed = listed_procedures(organ)
    document = {name: {"listed": list(found), "proposed": list[str]()} for name, found in listed.items()}
    model = terms.models[0]
    if model != BY_OWNER:
        if run is None:
            raise InputError("--procedures: name a folder for the describer's paid answers with --run")
        proposed, summary = asyncio.run(propose_procedures(listed, terms, run, seed))
        for name, added in proposed.items():
            document[name]["proposed"] = list(added)
        if summary.stopped is not None:
            return print_end(context, summary)
    if as_json:
        print_json(document)
        return 0
    for name, found in document.items():
        typer.echo(name)
        for procedure in found["listed"]:
            typer.echo(f"  {procedure}")
        for procedure in found["proposed"]:
            typer.echo(f"  {procedure}  (proposed by {model})")
    if organ == PUBLISHED:
        rest = PUBLISHED_TASKS - sum(map(len, listed.values()))
        typer.echo(f"The other {rest} tasks have five samples or fewer each; the paper does not name them.")
    return 0


def _as_dict(made: PreparedBenchmark) -> dict[str, object]:
    return {
        "path": str(made.path) if made.path else None,
        "samples": made.samples,
        "rejected": made.rejected,
        "undescribed": made.undescribed,
        "calls": {"made": made.summary.made, "replayed": made.summary.replayed},
        "cost_usd": made.summary.spent_usd,
        "stopped": made.summary.stopped,
    }


def _print_made(made: PreparedBenchmark, out: Path) -> None:
    for sample, reason in sorted(made.rejected.items())[:10]:
        typer.echo(f"left out {sample}: {reason}")
    if len(made.rejected) > 10:
        typer.echo(f"and {len(made.rejected) - 10} more, in {out}/rejected.csv")
    if any(reason.startswith(("alignment", "the images overlap")) for reason in made.rejected.values()):
        typer.echo("to keep and mark unaligned pairs: --keep unaligned")
    for sample, reason in sorted(made.undescribed.items())[:5]:
        typer.echo(f"not described {sample}: {reason}")
    if made.path is not None:
        typer.echo(f"{counted(made.samples, 'sample')}, {counted(len(made.rejected), 'pair')} left out")
        typer.echo(str(made.path))
        typer.echo(next_line("bench", "check", out))


def _concepts(benchmark: Path | None, file: Path, as_json: bool) -> int:
    """Write the key concepts of a benchmark to a new file, or read them from an edited one."""
    if benchmark is None:
        raise InputError("--concepts: name the benchmark")
    if file.exists():
        changed = store_concepts(benchmark, read_concepts(file))
        document: dict[str, object] = {"changed": changed}
        lines = [f"{benchmark}: {counted(changed, 'key concept')} written from {file}"]
    else:
        loaded = Benchmark.load(benchmark)
        missing = write_concepts(loaded, file)
        document = {"samples": len(loaded), "missing": missing, "file": str(file)}
        lines = [f"{file}: concepts of {counted(len(loaded), 'sample')}; edit it and repeat this command"]
        lines += [f"{sample}: no concept: {reason}" for sample, reason in missing.items()]
    if as_json:
        print_json(document)
    else:
        print("\n".join(lines))
    return 0


def _take_chosen(benchmark: Path | None, study: Path, as_json: bool) -> int:
    """Use readers' regions in a benchmark."""
    if benchmark is None:
        raise InputError("--study: name the benchmark of the study")
    found, undecided = take_regions(benchmark, study)
    if as_json:
        print_json({"chosen": found, "undecided": undecided})
    else:
        print(f"{benchmark}: {counted(len(found), 'region')} taken from the readers")
        for sample in undecided:
            print(f"{sample}: region unchanged, its readers' regions do not overlap")
    return 0
