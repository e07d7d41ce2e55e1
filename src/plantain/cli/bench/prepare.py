"""`plantain bench prepare`: a benchmark from raw pairs."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from pathlib import Path

import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.concepts import read_concepts, store_concepts, write_concepts
from plantain.bench.prepare.alignment import LEAST_QUALITY
from plantain.bench.prepare.describers import AS_TOLD
from plantain.bench.prepare.pairs import SIDE, PairRules
from plantain.bench.prepare.preparing import PreparedBenchmark, PreparePlan, prepare_benchmark
from plantain.bench.prepare.procedures import listed_procedures, procedures_of, propose_procedures
from plantain.bench.prepare.raw_pairs import COLUMNS, NEEDED, TABLE
from plantain.bench.prepare.regions_proposed import DifferenceProposer, RegionProposer
from plantain.cli.bench.studies import take_regions
from plantain.cli.terminal.ending import print_end
from plantain.cli.terminal.options import AsJson, EngineKind, Seed, SettingsFile
from plantain.cli.terminal.progress import progress_bar
from plantain.cli.terminal.tables import print_json
from plantain.privacy.text_reader import open_reader, why_no_reader
from plantain.records import InputError
from plantain.records.counts import counted
from plantain.runs.settings.terms import Terms, load_terms


class Regions(StrEnum):
    """Method that proposes regions."""

    DIFFERENCE = "difference"
    GROUNDED_SAM = "grounded-sam"


def prepare(
    context: typer.Context,
    raw: Path | None = typer.Argument(None, metavar="RAW", help=f"Folder with {TABLE}, before/ and after/."),
    out: Path | None = typer.Option(None, "--to", "--out", metavar="DIR", help="A new folder."),
    name: str = typer.Option("", help="Name of the benchmark; default: the folder's."),
    describer: str = typer.Option(AS_TOLD, metavar="MODEL", help="Describes pairs; hosted or as-told."),
    regions: Regions = typer.Option(Regions.DIFFERENCE, help="Method that proposes regions of interest."),
    no_region: bool = typer.Option(False, "--no-region", help="Leave regions open."),
    side: int = typer.Option(SIDE, min=64, max=4096, help="Longest side in pixels."),
    keep_unaligned: bool = typer.Option(False, "--keep-unaligned", help="Keep and mark unaligned pairs."),
    accept_text: bool = typer.Option(False, "--accept-text", help="Keep images with identifying text."),
    accept_faces: bool = typer.Option(False, "--accept-faces", help="Keep images that show a face."),
    keep_urls: bool = typer.Option(False, "--keep-urls", help="Keep addresses, not only hashes."),
    settings: SettingsFile = None,
    engine: EngineKind = "",
    run: Path | None = typer.Option(
        None, metavar="DIR", help="Run of a hosted describer; default: OUT.calls."
    ),
    seed: Seed = 0,
    procedures: str = typer.Option("", metavar="ORGAN", help="List procedures of an organ or all; stop."),
    study: Path | None = typer.Option(
        None, metavar="STUDY", help="RAW is a benchmark: use its readers' regions."
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
    reader = None if accept_text else open_reader()
    if reader is None and not accept_text:
        print(f"plantain: warning: text in images is not detected: {why_no_reader()}", file=sys.stderr)
    rules = PairRules(side, LEAST_QUALITY, keep_unaligned, accept_text, accept_faces, reader)
    plan = PreparePlan(
        name or out.name,
        rules,
        terms,
        run or out.with_name(f"{out.name}.calls"),
        _proposer(regions),
        seed,
        not no_region,
        keep_urls,
    )
    with progress_bar("pairs") as progress:
        made = asyncio.run(prepare_benchmark(raw, out, plan, progress))
    if as_json:
        print_json(_as_dict(made))
    else:
        _print_made(made, out)
    return print_end(context, made.walked)


def _proposer(regions: Regions) -> RegionProposer:
    if regions is Regions.DIFFERENCE:
        return DifferenceProposer()
    from plantain.bench.prepare.regions_grounded import grounded_sam

    return grounded_sam()


def _print_procedures(
    context: typer.Context, organ: str, terms: Terms, run: Path | None, seed: int, as_json: bool
) -> int:
    """Print the built-in procedures and those that a hosted describer proposes."""
    listed = listed_procedures() if organ == "all" else dict((procedures_of(organ),))
    document = {name: {"listed": list(found), "proposed": list[str]()} for name, found in listed.items()}
    model = terms.models[0]
    if model != AS_TOLD:
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
    return 0


def _as_dict(made: PreparedBenchmark) -> dict[str, object]:
    return {
        "path": str(made.path) if made.path else None,
        "samples": made.samples,
        "rejected": made.rejected,
        "undescribed": made.undescribed,
        "calls": {"made": made.walked.made, "replayed": made.walked.replayed},
        "cost_usd": made.walked.spent_usd,
        "stopped": made.walked.stopped,
    }


def _print_made(made: PreparedBenchmark, out: Path) -> None:
    for sample, reason in sorted(made.rejected.items())[:10]:
        typer.echo(f"left out {sample}: {reason}")
    if len(made.rejected) > 10:
        typer.echo(f"and {len(made.rejected) - 10} more, in {out}/rejected.csv")
    for sample, reason in sorted(made.undescribed.items())[:5]:
        typer.echo(f"not described {sample}: {reason}")
    if made.path is not None:
        typer.echo(f"{counted(made.samples, 'sample')}, {counted(len(made.rejected), 'pair')} left out")
        typer.echo(str(made.path))


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
        raise InputError("--study: name the benchmark that the study was made from")
    found, undecided = take_regions(benchmark, study)
    if as_json:
        print_json({"chosen": found, "undecided": undecided})
    else:
        print(f"{benchmark}: {counted(len(found), 'region')} taken from the readers")
        for sample in undecided:
            print(f"{sample}: region unchanged, its readers' regions do not overlap")
    return 0
