"""`plantain bench describe`: organs, tasks, regions and prompts of a benchmark."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import orjson
import typer
from rich.table import Table

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.describing import (
    MORE_THAN,
    USUAL,
    Description,
    PaperFigure,
    Spread,
    describe_benchmark,
    find_clip,
    paper_figures,
)
from plantain.bench.benchmark.describing import as_json as described
from plantain.cli.terminal.options import AsJson, BenchArgument
from plantain.cli.terminal.progress import progress_bar
from plantain.cli.terminal.tables import print_table, right
from plantain.files.opening import open_folder, replace_file
from plantain.files.tables import written_csv
from plantain.records.messages import counted, next_line


def describe(
    path: BenchArgument,
    to: Path | None = typer.Option(None, metavar="DIR", help="Folder for figures, tables and JSON."),
    clip: str = typer.Option(
        "openai/clip-vit-large-patch14", help="CLIP weights on this machine: a name or folder."
    ),
    paper: bool = typer.Option(False, "--paper", help="List MedEBench's Figures 3 to 5 and their gaps."),
    as_json: AsJson = False,
) -> int:
    """Describe organs, tasks, regions and the similarity of prompts and images, as MedEBench's Figures 3 and 4 do.

    Example: plantain bench describe MedEBench/editing --to described
    """
    benchmark = Benchmark.load(path)
    encoder, why_none = find_clip(clip)
    with progress_bar("samples") as progress:
        description = describe_benchmark(benchmark, encoder, why_none=why_none, progress=progress)
    figures = paper_figures(description) if paper else ()
    document = described(description) | ({"paper": [asdict(one) for one in figures]} if paper else {})
    rendered = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    names = (figures[0].file, figures[1].file) if figures else ("organs.svg", "properties.svg")
    if to is not None:
        _write(to, description, rendered, names)
    if as_json:
        typer.echo(rendered)
        return 0
    if figures:
        _print_figures(figures)
    else:
        _print(description)
    if to is not None:
        typer.echo(f"written: {to}/{', '.join(names)}, tasks.csv, samples.csv, description.json")
    print(next_line("bench", "generate", path, "--run", f"runs/{path.resolve().name}", "--editor", "MODEL"))
    return 0


def _print_figures(figures: tuple[PaperFigure, ...]) -> None:
    for one in figures:
        typer.echo(f"{one.name}: {one.shown or 'not drawn'}")
        if one.missing:
            typer.echo(f"  missing: {one.missing}")


def _print(description: Description) -> None:
    title = f"{description.name}: {counted(description.samples, 'sample')}"
    organs = Table("organ", *right("samples", "tasks", "sources", "mean region", "shows"), title=title)
    for row in description.organs:
        share = "" if row.roi_share is None else f"{row.roi_share:.1%}"
        shows = "none" if row.detectable is None else f"{row.detectable:.2f}"
        organs.add_row(row.organ, str(row.samples), str(row.tasks), str(row.clusters), share, shows)
    organs.caption = f"shows: smallest difference between two models at a standard deviation of {USUAL}"
    print_table(organs)
    listed = description.table5()
    if listed:
        title = f"Tasks with more than {counted(MORE_THAN, 'sample')}"
        tasks = Table("organ", "task", *right("samples"), title=title)
        for task in listed:
            tasks.add_row(task.organ, task.task, str(task.samples))
        print_table(tasks)
    directions = ", ".join(f"{n} {name}" for name, n in description.directions.items())
    print(
        f"{counted(description.samples, 'sample')} from {counted(description.clusters, 'independent source')}; "
        f"{counted(len(description.tasks), 'task')}; "
        f"{directions}; {_truths(description)}, {description.with_roi} with a region, "
        f"{description.with_detailed} with a description of the change."
    )
    print(_detectable(description))
    shares = Spread.of(list(description.roi_shares.values()))
    if shares is not None:
        print(f"Region: {_spread(shares, '.1%')} of the image.")
    cosine = Spread.of(list(description.similarity.values()))
    if cosine is not None:
        print(f"Prompt and image ({description.similarity_name}): {_spread(cosine, '.3f')}.")
    else:
        print(f"Similarity of prompts and images not measured: {description.no_similarity}")


def _detectable(description: Description) -> str:
    """Return the smallest differences that a benchmark of this size can detect."""
    two, seven = description.detectable, description.detectable_of_seven
    if None in two.values():
        return (
            f"{counted(description.clusters, 'independent source')} can show no difference between models: "
            f"five are needed."
        )

    def joined(found: dict[float, float | None]) -> str:
        return ", ".join(f"{value:.3f}" for value in found.values() if value is not None)

    return (
        "Smallest difference between two models (scores from 0 to 1) that this size shows in four of five cases: "
        f"{joined(two)} where the differences of sources have a standard deviation of {', '.join(map(str, two))}; "
        f"among seven models {joined(seven)}."
    )


def _truths(description: Description) -> str:
    synthetic = description.with_synthetic_truth
    real = f"{description.with_truth - synthetic} with a real image after"
    return f"{real}, {synthetic} with a synthetic one" if synthetic else real


def _spread(spread: Spread, form: str) -> str:
    low, median, high = (format(value, form) for value in (spread.low, spread.median, spread.high))
    return f"median {median}, nine tenths between {low} and {high}"


def _write(to: Path, description: Description, rendered: str, names: tuple[str, str]) -> None:
    from plantain.bench.benchmark.describing import organs_figure, properties_figure
    from plantain.pages.drawing import printed

    open_folder(to)
    replace_file(to / names[0], printed(organs_figure(description)).encode())
    replace_file(to / names[1], printed(properties_figure(description)).encode())
    replace_file(to / "description.json", f"{rendered}\n".encode())
    tasks = [(row.organ, row.task, str(row.samples), str(row.clusters)) for row in description.tasks]
    replace_file(to / "tasks.csv", written_csv([("organ", "task", "samples", "sources"), *tasks]).encode())
    ids = sorted({*description.roi_shares, *description.similarity})
    values = (description.roi_shares, description.similarity)
    rows = [
        (sample, *("" if (v := of.get(sample)) is None else f"{v:.6f}" for of in values)) for sample in ids
    ]
    header = ("sample", "roi_share", description.similarity_name)
    replace_file(to / "samples.csv", written_csv([header, *rows]).encode())
