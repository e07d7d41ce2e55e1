"""`plantain bench prepare` and `from-build`: a benchmark from raw pairs, readers' regions in it, one from a build."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

import numpy as np
import typer

from plantain.bench.benchmark.benchmark import Benchmark, choose_region, proposed_regions
from plantain.bench.benchmark.concepts import read_concepts, store_concepts, write_concepts
from plantain.bench.benchmark.from_build import benchmark_from_build
from plantain.bench.prepare.describers import BY_OWNER, PUBLISHED_TASKS, listed_procedures
from plantain.bench.prepare.pairs import COLUMNS, NEEDED, SIDE, TABLE, PairRules
from plantain.bench.prepare.preparing import PreparedBenchmark, prepare_benchmark
from plantain.bench.prepare.regions_grounded import GroundedProposer
from plantain.bench.prepare.regions_proposed import DifferenceProposer
from plantain.cli.terminal.options import AsJson, OwnFindings, RunArgument, SettingsFile
from plantain.cli.terminal.progress import damage_named, print_end, progress_bar
from plantain.cli.terminal.tables import print_json
from plantain.findings import load_taxonomy
from plantain.pixels.arrays import Mask
from plantain.privacy.rapid_text import open_reader, why_no_reader
from plantain.records import InputError
from plantain.records.messages import counted, next_line
from plantain.review.answers import region_of
from plantain.review.blinding import fitted_mask
from plantain.review.results.rows import Row, judged_rows
from plantain.review.study import ReaderTask, open_study
from plantain.runs.terms import load_terms


class Regions(StrEnum):
    """The method that proposes regions of interest."""

    DIFFERENCE = "difference"
    GROUNDED_SAM = "grounded-sam"


class Keep(StrEnum):
    """Pairs that are omitted by default and can be kept."""

    UNALIGNED, TEXT, FACES = "unaligned", "text", "faces"


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
        None, help="Keep (and mark) unaligned pairs, or images with identifying text or faces; repeatable."
    ),
    settings: SettingsFile = None,
    procedures: str = typer.Option(
        "", metavar="NAME", help="published: list the tasks of MedEBench's Table 5."
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

    pairs.csv needs the columns id, organ and task, and may have prompt, rephrased, detailed, modality, key_concept,
    licence, patient, url, before and after. Pairs that cannot be aligned, or whose images may identify a patient, are
    listed in rejected.csv with the reason.

    Example: plantain bench prepare raw --to benches/hands
    """
    terms = load_terms(settings, (describer,))
    if procedures:
        return _print_procedures(procedures, as_json)
    if out is not None and (concepts or study):
        raise InputError(
            f"--to {out}: --concepts and --study change RAW itself; leave out --to, or copy RAW first"
        )
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
    grounded = regions is Regions.GROUNDED_SAM
    proposer = GroundedProposer(detector, segmenter) if grounded else DifferenceProposer()
    with progress_bar("pairs") as progress:
        work = prepare_benchmark(raw, out, terms, rules=rules, proposer=proposer, progress=progress)
        made = asyncio.run(work)
    if as_json:
        print_json(_as_dict(made))
    else:
        _print_made(made, out)
    return print_end(context, made.summary)


def _print_procedures(name: str, as_json: bool) -> int:
    """Print a list of procedures, as search terms for pairs."""
    listed = listed_procedures(name)
    if as_json:
        print_json({organ: {"listed": found} for organ, found in listed.items()})
        return 0
    for organ, found in listed.items():
        print("\n  ".join((organ, *found)))
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
    for keep, words in ((Keep.TEXT, "text that may identify"), (Keep.FACES, "shows a face")):
        if any(words in reason for reason in made.rejected.values()):
            typer.echo(f"to keep such images, if they identify no patient: --keep {keep.value}")
    for sample, reason in sorted(made.undescribed.items())[:5]:
        typer.echo(f"not described {sample}: {reason}")
    if made.path is not None:
        typer.echo(f"{counted(made.samples, 'sample')}, {counted(len(made.rejected), 'pair')} left out")
        typer.echo(
            f"give your models the images in {out / 'previous'} (aligned, cut, resized to --side), not the raw ones"
        )
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


def take_regions(benchmark: Path, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Replace a benchmark's regions by those that a study's readers drew or chose.

    A pixel belongs to the region if more than half of the readers included it: of two readers, both. A sample without
    such a pixel keeps its region.

    Returns:
        By sample: how the region was chosen; and the readers' answers if none was.

    Raises:
        InputError: not a study, no answers about regions, or a sample that the benchmark does not have.
    """
    study = open_study(folder)
    rows = judged_rows(study, ReaderTask.CHOOSE_ROI)
    if not rows:
        raise InputError(f"--study {folder}: no reader has answered a choose-roi question")
    chosen: dict[str, str] = {}
    undecided: dict[str, str] = {}
    for sample in sorted({row.source for row in rows}):
        mine = [row for row in rows if row.source == sample]
        regions = [_region(benchmark, sample, row, study.by_case[row.case].size) for row in mine]
        joint = np.asarray(2 * np.sum(regions, axis=0) > len(regions))
        words = ", ".join(
            f"{n} x {answer}" for answer, n in sorted(Counter(row.answer for row in mine).items())
        )
        how = f"{words}; majority of {len(regions)}"
        if not joint.any():
            undecided[sample] = how
            continue
        choose_region(benchmark, sample, joint, f"study {study.digest[:16]}", how)
        chosen[sample] = how
    return chosen, undecided


def _region(benchmark: Path, sample: str, row: Row, size: tuple[int, int]) -> Mask:
    if row.value.get("mask"):
        return region_of(row.value)

    return fitted_mask(proposed_regions(benchmark, sample)[row.value["proposal"]], size)


def from_build(
    run: RunArgument,
    out: Path = typer.Option(..., "--to", metavar="DIR", help="New folder for the benchmark."),
    real_only: bool = typer.Option(False, "--real-only", help="Only real images as ground truth."),
    findings: OwnFindings = None,
    as_json: AsJson = False,
) -> int:
    """Turn a build's successes into samples with exact regions.

    Each success becomes two samples: the reverse edit, whose ground truth is the real original, and the edit itself,
    whose ground truth is the judged edit, marked as synthetic.

    Example: plantain bench from-build runs/pilot --to benches/pilot
    """
    with progress_bar("tasks") as progress:
        made = benchmark_from_build(
            run,
            out,
            real_only=real_only,
            taxonomy=load_taxonomy(findings or ()),
            progress=progress,
        )
    if as_json:
        document = asdict(made) | {"path": str(made.path), "restricted": made.restricted}
        print_json(document)
        return damage_named(made.damaged, "its task is left out")
    typer.echo(
        f"{counted(made.real + made.synthetic, 'sample')} from "
        f"{counted(made.successes, 'success', 'successes')}: {made.real} with a real image as "
        f"ground truth, {made.synthetic} with a synthetic one; {made.regions} with an exact region"
    )
    for reason, n in made.left_out.items():
        typer.echo(f"left out {n}: {reason}")
    if made.restricted:
        typer.echo(made.restricted)
    typer.echo(str(made.path))
    typer.echo(next_line("bench", "check", out))
    return damage_named(made.damaged, "its task is left out")
