"""`plantain bench prepare`: a benchmark from raw pairs."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.bench.prepare.alignment import LEAST_QUALITY
from plantain.bench.prepare.describers import AS_TOLD
from plantain.bench.prepare.pairs import SIDE, PairRules
from plantain.bench.prepare.preparing import PreparedBenchmark, PreparePlan, prepare_benchmark
from plantain.bench.prepare.procedures import listed_procedures, procedures_of, propose_procedures
from plantain.bench.prepare.raw_pairs import COLUMNS, NEEDED, TABLE
from plantain.bench.prepare.regions_proposed import DifferenceProposer, RegionProposer
from plantain.cli.terminal.application import application
from plantain.cli.terminal.bar import progress_bar
from plantain.privacy.text_reader import open_reader, why_no_reader
from plantain.records import InputError
from plantain.records.counts import counted
from plantain.runs.settings.terms import Terms, load_terms

app = application()


class Regions(StrEnum):
    """What proposes regions."""

    DIFFERENCE = "difference"
    GROUNDED_SAM = "grounded-sam"


@app.command(epilog="Example: plantain bench prepare raw --to benches/hands")
def prepare(
    raw: Annotated[
        Path | None, typer.Argument(metavar="RAW", help=f"Folder with {TABLE}, before/ and after/.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--to", metavar="DIR", help="A new folder.")] = None,
    name: Annotated[str, typer.Option(help="Name of the benchmark; default: the folder's.")] = "",
    describer: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help="Who puts pairs into words: a hosted provider/model, or their owner."
        ),
    ] = AS_TOLD,
    regions: Annotated[Regions, typer.Option(help="What proposes regions of interest.")] = Regions.DIFFERENCE,
    no_region: Annotated[
        bool, typer.Option("--no-region", help="Leave regions open instead of taking the first proposal.")
    ] = False,
    side: Annotated[int, typer.Option(min=64, max=4096, help="Longest side in pixels.")] = SIDE,
    least_quality: Annotated[
        float, typer.Option(min=-1.0, max=1.0, help="Alignment quality below which a pair is refused.")
    ] = LEAST_QUALITY,
    keep_unaligned: Annotated[
        bool, typer.Option("--keep-unaligned", help="Keep such pairs as they are, and mark them.")
    ] = False,
    accept_text: Annotated[
        bool, typer.Option("--accept-text", help="Keep images with text that may identify a person.")
    ] = False,
    accept_faces: Annotated[
        bool, typer.Option("--accept-faces", help="Keep images that show a face.")
    ] = False,
    keep_urls: Annotated[
        bool, typer.Option("--keep-urls", help="Keep addresses, which can name patients; else hashes only.")
    ] = False,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", help="TOML with [limits], [providers.NAME], [consent], [engine]."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(metavar="KIND", help="Where pairs are aligned: local, or ray; instead of [engine]."),
    ] = "",
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="Run of a hosted describer; default: DIR.calls."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of paraphrases and of the describer's draws.")] = 0,
    procedures: Annotated[
        str,
        typer.Option(
            "--procedures", metavar="ORGAN", help="Only list procedures to collect pairs of; or all."
        ),
    ] = "",
    columns: Annotated[bool, typer.Option("--columns", help=f"Only say what {TABLE} may hold.")] = False,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study", metavar="STUDY", help="RAW is a benchmark: take the regions that readers chose."
        ),
    ] = None,
    in_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> int:
    """Align raw pairs, describe them, propose regions, and write a benchmark in plantain's own format.

    Pairs that cannot be aligned well enough, or that show what may identify a person, are left out and listed in
    rejected.csv with the reason.
    """
    terms = load_terms(settings, (describer,), engine=engine)
    if columns:
        _print_columns()
        return 0
    if procedures:
        return _print_procedures(procedures, terms, run, seed, in_json)
    if study is not None:
        return _take_chosen(raw, study, in_json)
    if raw is None or out is None:
        raise InputError("bench prepare: give RAW and --to; --columns says what RAW holds")
    reader = None if accept_text else open_reader()
    if reader is None and not accept_text:
        print(f"plantain: warning: text in images is not looked for: {why_no_reader()}", file=sys.stderr)
    rules = PairRules(side, least_quality, keep_unaligned, accept_text, accept_faces, reader)
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
    if in_json:
        typer.echo(orjson.dumps(_as_dict(made), option=orjson.OPT_INDENT_2).decode())
    else:
        _print_made(made, out)
    return _ended(made, raw, out)


def _proposer(regions: Regions) -> RegionProposer:
    if regions is Regions.DIFFERENCE:
        return DifferenceProposer()
    from plantain.bench.prepare.regions_grounded import grounded_sam

    return grounded_sam()


def _print_columns() -> None:
    typer.echo(f"{TABLE} has one row a pair; pictures are before/ID.* and after/ID.*. Columns:")
    for column, text in COLUMNS.items():
        typer.echo(f"  {column:<12}{text}{' (needed)' if column in NEEDED else ''}")


def _print_procedures(organ: str, terms: Terms, run: Path | None, seed: int, in_json: bool) -> int:
    """Our list, and where a hosted describer is named what it adds."""
    listed = listed_procedures() if organ == "all" else dict((procedures_of(organ),))
    document = {name: {"listed": list(found), "proposed": list[str]()} for name, found in listed.items()}
    model = terms.models[0]
    if model != AS_TOLD:
        if run is None:
            raise InputError(
                "--procedures: name a folder for the describer's answers with --run; they are paid for"
            )
        proposed, summary = asyncio.run(propose_procedures(listed, terms, run, seed))
        for name, added in proposed.items():
            document[name]["proposed"] = list(added)
        if summary.stopped is not None:
            print(f"plantain: stopped ({summary.stopped}); type the same command to go on", file=sys.stderr)
            return 1 if summary.failed else 3
    if in_json:
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
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


def _ended(made: PreparedBenchmark, raw: Path, out: Path) -> int:
    if made.walked.stopped is None:
        return 0
    print(
        f"plantain: stopped ({made.walked.stopped}); go on with: plantain bench prepare {raw} --to {out} "
        "(the same options); what was described is not paid for again",
        file=sys.stderr,
    )
    return 1 if made.walked.failed else 3


def _take_chosen(benchmark: Path | None, study: Path, in_json: bool) -> int:
    """Readers' regions into a benchmark."""
    from plantain.cli.bench.chosen_regions import take_regions

    if benchmark is None:
        raise InputError("--study: name the benchmark that the study was made from")
    found, undecided = take_regions(benchmark, study)
    if in_json:
        import orjson

        print(orjson.dumps({"chosen": found, "undecided": undecided}, option=orjson.OPT_INDENT_2).decode())
    else:
        print(f"{benchmark}: {counted(len(found), 'region is', 'regions are')} now those that readers chose")
        for sample in undecided:
            print(f"{sample}: keeps what it had, since its readers' regions do not meet")
    return 0
