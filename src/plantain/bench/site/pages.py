"""Writes the site: pages complete in themselves, that ask the network for nothing and come out byte for byte again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.leaderboard.latex import table_csv
from plantain.bench.leaderboard.measures import Measure
from plantain.bench.leaderboard.pages import document, gather, interval, number
from plantain.bench.leaderboard.pages import page as leaderboard_page
from plantain.bench.leaderboard.pairwise import pairwise_rows, pairwise_tables
from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell, make_table, places_of_rank
from plantain.bench.site.assembling import Board, boards
from plantain.bench.submission.bundle import Bundle
from plantain.files.writing import replace_file
from plantain.pages.publishing import page_environment, write_page
from plantain.pages.thumbnails import data_uri
from plantain.pages.wording import DASH
from plantain.pixels.decode import decode_untrusted
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import InputError
from plantain.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
SHOWN = 12
"""Samples whose pictures a page shows."""

_OWN = ("before", "after")
"""The benchmark's own pictures, beside those of models."""

SIDE, BYTES = 320, 22_000
"""Longest side of a picture in pixels, and its bytes at most."""

SPACE = """---
title: Leaderboard
sdk: static
app_file: index.html
pinned: false
---

A leaderboard made by `plantain bench site`.
"""


@dataclass(frozen=True, slots=True)
class SiteTable:
    """A table of a page: its heading, its columns, and rows of a label and cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A sample's pictures as data URIs, by arm; "before" and "after" where the benchmark is at hand."""

    title: str
    prompt: str
    pictures: tuple[tuple[str, str], ...]


def write_site(
    bundles: Sequence[Bundle], out: Path, benches: Sequence[Benchmark] = (), *, space: bool = False
) -> int:
    """Writes a leaderboard of submissions.

    Args:
        bundles: submissions, and scores that a holder recomputed.
        out: a folder that does not exist or is empty.
        benches: benchmarks whose pictures may be shown beside outputs, where their licences let them.
        space: add what makes the folder a static Space of the Hugging Face hub.

    Returns:
        How many files were written.

    Raises:
        InputError: no bundles, bundles that contradict each other, or the folder holds something.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder; give a new one")
    made = boards(bundles)
    if not made:
        raise InputError("no submissions to show")
    known = {bench.digest: bench for bench in benches}
    files: dict[str, str] = {}
    history = [(board, _folder(board)) for board in made]
    if len({folder for _, folder in history}) < len(history):
        raise InputError("two benchmarks of different content share a name and version: rename one")
    for board, folder in history:
        files |= {
            f"{folder}/{name}": text for name, text in _board_pages(board, known.get(board.digest)).items()
        }
    files["index.html"] = _index(history)
    if space:
        files["README.md"] = SPACE
    for name, text in files.items():
        if name.endswith(".html"):
            write_page(out / name, text)
        else:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            replace_file(out / name, text.encode())
    return len(files)


def _board_pages(board: Board, bench: Benchmark | None) -> dict[str, str]:
    table = make_table(board.scores)
    shown = list(_pictures(board, bench))
    title = board.scores.benchmark
    whole = gather(table, None, None, 0)
    files = {
        "leaderboard.html": leaderboard_page(whole),
        "leaderboard.json": document(whole),
        "leaderboard.csv": table_csv(
            [*table.cells.values(), *table.tasks.values(), *table.regions.values()], table
        ),
    }
    organs = {organ: f"organ-{_slug(organ)}.html" for organ in board.scores.organs}
    tasks = {pair: f"task-{_slug('-'.join(pair))}.html" for pair in _tasks(table)}
    files["index.html"] = _page(
        f"{title}",
        _links(("all numbers", "leaderboard.html"), ("compare two models", "compare.html"), ("judges", "judges.html"),
               ("JSON", "leaderboard.json"), ("CSV", "leaderboard.csv"), ("all versions", "../index.html")),
        [_main(table, board), *_pairwise(table, board)],
        shown=shown,
        below=_links(*organs.items(), *((f"{o}: {t}", n) for (o, t), n in tasks.items())),
    )  # fmt: skip
    back = _links(("leaderboard", "index.html"))
    for organ, name in organs.items():
        cells = {k: c for k, c in table.cells.items() if k[1] == organ}
        rows = _rows(
            table,
            table.measures,
            lambda label, m, cells=cells, organ=organ: cells.get((label, organ, m.name)),
        )
        files[name] = _page(f"{organ}: {title}", back, [rows])
    for (organ, task), name in tasks.items():
        rows = _rows(
            table, table.main, lambda label, m, o=organ, t=task: table.tasks.get((label, o, t, m.name))
        )
        files[name] = _page(f"{task}: {title}", back, [rows])
    files["compare.html"] = _page(
        f"Two models side by side: {title}", back, _differences(table), shown=shown, compare=True
    )
    lines = tuple((label, one.line) for label, one in sorted(board.cards.items()))
    judges = SiteTable(
        "Judges", ("judge", "what its card says"), lines, "" if lines else "No judge has scored anything."
    )
    files["judges.html"] = _page(f"Judges: {title}", back, [judges])
    return files


def _tasks(table: Table) -> list[tuple[str, str]]:
    return list(dict.fromkeys((organ, task) for _, organ, task, _ in table.tasks))


def _main(table: Table, board: Board) -> SiteTable:
    rows = _rows(table, table.main or table.measures, lambda label, m: table.cell(label, OVERALL, m.name))
    ranked = table.ranked
    cells_of_row = []
    for row in rows.rows:
        cell = table.cell(row[0], OVERALL, ranked.name) if ranked else None
        cells_of_row.append(
            (
                row[0],
                places_of_rank(cell) or DASH,
                *row[1:],
                board.submissions.get(row[0], ""),
                board.models.get(row[0], ""),
            )
        )
    note = "Mean and 95 % interval over sources. " + (
        "A rank is the places that differences beyond chance leave."
        if ranked
        else "No order of models is told apart: rows stand as submitted."
    )
    return SiteTable(
        "Leaderboard",
        ("model", "rank", *rows.columns[1:], "submission", "said of the model"),
        tuple(cells_of_row),
        note,
    )


def _rows(table: Table, measures: Sequence[Measure], find: object) -> SiteTable:
    """A row per arm with number and interval of each measure."""
    assert callable(find)
    rows = []
    for arm in table.general:
        cells: list[TableCell | None] = [find(arm.label, measure) for measure in measures]
        if any(cell is not None and cell.samples for cell in cells):
            rows.append((arm.label, *(_cell_text(cell, m) for cell, m in zip(cells, measures, strict=True))))
    heads = tuple(f"{m.name} {'↑' if m.higher_is_better else '↓'}" for m in measures)
    return SiteTable(
        "Scores",
        ("model", *heads),
        tuple(rows),
        "; ".join(f"{m.name}: {m.label}" for m in measures if m.name != m.label),
    )


def _cell_text(cell: TableCell | None, measure: Measure) -> str:
    if cell is None or cell.estimate.value is None:
        return DASH
    bounds = "" if cell.estimate.low is None else f" ({interval(cell.estimate, measure.digits)})"
    short = "" if cell.scored == cell.outputs else f", {100 * cell.coverage:.0f} % scored"
    return f"{number(cell.estimate.value, measure.digits)}{bounds}{short}"


def _pairwise(table: Table, board: Board) -> Iterator[SiteTable]:
    """Bradley-Terry strengths, by people and by each judge."""
    for found in pairwise_tables(table, board.compared):
        strengths = found.strengths
        title = "People, two at a time" if found.source == "people" else f"Pairs that {found.source} implies"
        rows = []
        for row in pairwise_rows([found]):
            low, high = row["rank_low"], row["rank_high"]
            rank = DASH if low is None else str(low) if low == high else f"{low} to {high}"
            rows.append((str(row["model"]), rank, _with_bounds(row)))
        note = (
            f"Bradley-Terry with ties, in logits, mean 0; {strengths.comparisons:,} comparisons, "
            f"{strengths.cases:,} sources, {found.rule}."
            + (f" {found.lacking.capitalize()}." if found.lacking else "")
        )
        yield SiteTable(title, ("model", "rank", "strength"), tuple(rows), note)


def _with_bounds(row: Mapping[str, object]) -> str:
    bounds = [number(value) for name in ("strength", "low", "high") if isinstance(value := row[name], float)]
    return bounds[0] if len(bounds) < 3 else f"{bounds[0]} ({bounds[1]} to {bounds[2]})"


def _differences(table: Table) -> list[SiteTable]:
    found = []
    for measure in table.main:
        rows = tuple(
            (
                pair.first,
                pair.second,
                number(pair.estimate.value, 3),
                interval(pair.estimate, 3),
                number(pair.p_holm, 3),
            )
            for pair in table.differences.get(measure.name, ())
        )
        columns = ("first", "second", "difference", "95 % interval", "p (Holm)")
        found.append(SiteTable(f"{measure.name}: paired differences", columns, rows))
    return found


def _pictures(board: Board, bench: Benchmark | None) -> Iterator[Shown]:
    """Samples with pictures, where their licence lets them be shown; spread over organs."""
    free = {licence.value for licence in FREE_TO_LEAVE}
    order: dict[str, int] = {}
    places = []
    for facts in board.scores.samples:
        order[facts.organ] = order.get(facts.organ, 0) + 1
        if facts.licence in free:
            places.append((order[facts.organ], facts))
    chosen = [facts for _, facts in sorted(places, key=lambda one: one[0])[:SHOWN]]
    for facts in chosen:
        pictures = []
        if bench is not None:
            sample = bench.sample(facts.id)
            pictures.append(
                ("before", data_uri(bench.previous(sample), SIDE, BYTES, synthetic=sample.image.synthetic))
            )
            if sample.changed is not None:
                pictures.append(
                    ("after", data_uri(bench.changed(sample), SIDE, BYTES, synthetic=sample.synthetic_truth))
                )
        for arm in board.scores.arms:
            held = board.outputs.get((arm.label, facts.id))
            if held is not None:
                bundle, row = held
                pixels = decode_untrusted(bundle.read(row), row.file)
                pictures.append((arm.label, data_uri(pixels, SIDE, BYTES, synthetic=True)))
        yield Shown(f"{facts.organ}, sample {facts.id}", facts.prompt, tuple(pictures))


def _index(history: Sequence[tuple[Board, str]]) -> str:
    rows = []
    links = []
    for board, folder in history:
        arms = board.scores.arms
        title = f"{board.name} {board.edition or board.digest[:12]}"
        links.append((title, f"{folder}/index.html"))
        rows.append((title, str(len(board.scores.samples)), str(len(arms)), board.digest[:12]))
    note = "Scores of two versions never share a table."
    table = SiteTable(
        "Benchmarks and versions, newest first",
        ("benchmark", "samples", "models", "content"),
        tuple(rows),
        note,
    )
    return _page("Leaderboards", _links(*links), [table])


def _page(
    title: str,
    links: Sequence[tuple[str, str]],
    tables: Sequence[SiteTable],
    *,
    shown: Sequence[Shown] = (),
    compare: bool = False,
    below: Sequence[tuple[str, str]] = (),
) -> str:
    labels = list(dict.fromkeys(label for one in shown for label, _ in one.pictures if label not in _OWN))
    return (
        _environment()
        .get_template("site.html.j2")
        .render(
            title=title,
            links=links,
            tables=tables,
            shown=shown,
            compare=compare,
            labels=labels,
            below=below,
            version=__version__,
        )
    )


def _links(*links: tuple[str, str]) -> list[tuple[str, str]]:
    return list(links)


def _folder(board: Board) -> str:
    return f"{_slug(board.name)}-{_slug(board.edition) or board.digest[:12]}"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:80]


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return page_environment(TEMPLATES, (TEMPLATES / "site.js").read_text(encoding="utf-8"))
