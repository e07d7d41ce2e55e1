"""`plantain bench describe`: organs, tasks, regions and prompts of a benchmark."""

from __future__ import annotations

from pathlib import Path

import orjson
import typer
from rich.table import Table

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.describing import (
    DEVIATION,
    FIGURES,
    MORE_THAN,
    Description,
    describe_benchmark,
    organs_figure,
    paper_figures,
    properties_figure,
    spread,
)
from plantain.bench.benchmark.describing import as_json as described
from plantain.cli.terminal.options import AsJson, BenchArgument
from plantain.cli.terminal.progress import progress_bar
from plantain.cli.terminal.tables import print_table, right
from plantain.files.opening import open_folder, replace_file
from plantain.metrics.networks import CLIP, find_networks
from plantain.records.messages import counted, next_line


def describe(
    path: BenchArgument,
    to: Path | None = typer.Option(None, metavar="DIR", help="Folder for figures and JSON."),
    clip: str = typer.Option(CLIP, help="CLIP weights on this machine: a name or folder."),
    paper: bool = typer.Option(False, "--paper", help="List MedEBench's Figures 3 to 5 and their gaps."),
    as_json: AsJson = False,
) -> int:
    """Describe organs, tasks, regions and the similarity of prompts and images, as MedEBench's Figures 3 and 4 do.

    Example: plantain bench describe MedEBench/editing --to described
    """
    benchmark = Benchmark.load(path)
    networks = find_networks({"clip_talign"}, clip=clip)
    why_none = "; ".join(why for _, why in networks.why_not)
    with progress_bar("samples") as progress:
        description = describe_benchmark(benchmark, networks.clip, why_none=why_none, progress=progress)
    document = described(description)
    if paper:
        document["paper"] = paper_figures(description)
    rendered = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    if to is not None:
        _write(to, description, rendered)
    if as_json:
        typer.echo(rendered)
        return 0
    if paper:
        for one in paper_figures(description):
            typer.echo(f"{one['name']}: {one['shown'] or 'not drawn'}")
            if one["missing"]:
                typer.echo(f"  missing: {one['missing']}")
    else:
        _print(description)
    if to is not None:
        typer.echo(f"written: {to}/{', '.join(FIGURES)}, description.json")
    print(next_line("bench", "generate", path, "--run", f"runs/{path.resolve().name}", "--editor", "MODEL"))
    return 0


def _print(description: Description) -> None:
    title = f"{description.name}: {counted(description.samples, 'sample')}"
    organs = Table("organ", *right("samples", "tasks", "sources", "mean region"), title=title)
    for row in description.organs:
        share = "" if row.roi_share is None else f"{row.roi_share:.1%}"
        organs.add_row(row.organ, str(row.samples), str(row.tasks), str(row.clusters), share)
    print_table(organs)
    listed = [row for row in description.tasks if row.samples > MORE_THAN]
    if listed:
        title = f"Tasks with more than {counted(MORE_THAN, 'sample')}"
        tasks = Table("organ", "task", *right("samples"), title=title)
        for task in listed:
            tasks.add_row(task.organ, task.task, str(task.samples))
        print_table(tasks)
    synthetic = description.with_synthetic_truth
    print(
        f"{counted(description.samples, 'sample')} from {counted(description.clusters, 'independent source')}; "
        f"{counted(len(description.tasks), 'task')}; "
        f"{', '.join(f'{n} {name}' for name, n in description.directions.items())}; "
        f"{description.with_truth - synthetic} with a real image after, {synthetic} with a synthetic one, "
        f"{description.with_roi} with a region, {description.with_description} with a description of the change."
    )
    if description.detectable is None or description.detectable_of_seven is None:
        sources = counted(description.clusters, "independent source")
        print(f"{sources} can show no difference between models: five are needed.")
    else:
        print(
            f"Smallest detectable difference between two models (scores from 0 to 1): {description.detectable:.3f}, "
            f"for a pair among seven {description.detectable_of_seven:.3f} (SD between sources {DEVIATION})."
        )
    if shares := spread(description.roi_shares.values()):
        print(f"Region: {_spread(shares, '.1%')} of the image.")
    if cosine := spread(description.similarity.values()):
        print(f"Prompt and image ({description.similarity_name}): {_spread(cosine, '.3f')}.")
    else:
        print(f"Similarity of prompts and images not measured: {description.no_similarity}")


def _spread(found: dict[str, float], form: str) -> str:
    low, median, high = (format(found[key], form) for key in ("low", "median", "high"))
    return f"median {median}, nine tenths between {low} and {high}"


def _write(to: Path, description: Description, rendered: str) -> None:
    from plantain.pages.drawing import printed

    open_folder(to)
    for name, figure in zip(FIGURES, (organs_figure, properties_figure), strict=True):
        replace_file(to / name, printed(figure(description)).encode())
    replace_file(to / "description.json", f"{rendered}\n".encode())
