"""`plantain review invite`, `serve`, `results`, `export` and `import`: the readers of a study and their answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from plantain.cli.terminal.options import AsJson, AsLatex, Port, StudyArgument
from plantain.cli.terminal.tables import print_json
from plantain.records.messages import counted, next_line
from plantain.review.answers import import_ratings
from plantain.review.ratings import Ratings
from plantain.review.results.analysis import analyse
from plantain.review.results.rows import rows_of
from plantain.review.results.writing import results_latex, write_results
from plantain.review.study import open_study


def invite(
    study: StudyArgument,
    readers: int = typer.Option(1, min=1, max=1000, help="How many new readers."),
    url: str = typer.Option("http://127.0.0.1:8765", metavar="URL", help="Where readers reach it."),
    as_json: AsJson = False,
) -> None:
    """Make each new reader a link of their own. A link is shown once: only its hash is kept.

    Example: plantain review invite studies/pilot --readers 5
    """
    from plantain.review.serving import link

    with closing(Ratings.open(open_study(study))) as ratings:
        made = [ratings.invite() for _ in range(readers)]
    links = [{"reader": reader.code, "link": link(url, token)} for reader, token in made]
    if as_json:
        print_json({"invited": links})
        return
    for one in links:
        print(f"{one['reader']}  {one['link']}")
    print(next_line("review", "serve", study))


def serve(
    study: StudyArgument,
    port: Port = 8765,
    host: str = typer.Option("127.0.0.1", help="Address; others than 127.0.0.1 need TLS."),
    agreement: bool = typer.Option(
        False, "--agreement", help="Serve credentialed images to readers who confirm."
    ),
    url: str = typer.Option("", metavar="URL", help="Where readers reach it, behind a proxy."),
    as_json: AsJson = False,
) -> None:
    """Serve a study until Ctrl-C. Every answer is stored before the next case appears; a kill loses none.

    Example: plantain review serve studies/pilot
    """
    from plantain.review.serving import is_loopback
    from plantain.review.serving import serve as run

    def announce(address: str, administrator: str, readers: int) -> None:
        if as_json:
            import orjson

            document = {"url": address, "administrator": administrator, "readers": readers}
            print(orjson.dumps(document).decode(), flush=True)
            return
        print(f"study: {address}   ({counted(readers, 'reader')} invited)")
        print(f"administrator: {administrator}")
        if not is_loopback(host):
            print(
                f"plantain: --host {host}: others on the network can reach this study, and without TLS they can "
                "read its traffic; see docs/design/review.md",
                file=sys.stderr,
            )
        print("Ctrl-C stops; nothing is lost", flush=True)

    run(study, host=host, port=port, agreement=agreement, url=url, announce=announce)


JUDGE = {
    "agreement": "reader and judge agree",
    "strict": "judge too strict: rejects accepted edits",
    "lenient": "judge too lenient: accepts rejected edits",
}
"""Outcomes of the comparison with the run's judge (Med-Banana-50K, human validation)."""


def results(
    study: StudyArgument,
    to: Path | None = typer.Option(None, metavar="FILE.html", help="Page; default: STUDY/results.html."),
    as_json: AsJson = False,
    as_latex: AsLatex = False,
) -> None:
    """Analyse acceptance, scores, strengths, accuracy, agreement, regions and times, with readers and cases random.

    Example: plantain review results studies/pilot --to results.html
    """
    opened = open_study(study)
    with closing(Ratings.open(opened)) as ratings:
        rows = rows_of(opened, ratings)
    found = analyse(opened, rows)
    if as_json:
        print_json(found)
        return
    if as_latex:
        print(results_latex(found), end="")
        return
    page = write_results(found, to or study / "results.html")
    for block in found["blocks"]:
        readers = counted(block["readers"], "reader")
        print(f"{block['title']}: {counted(block['judged'], 'answer')} by {readers}")
        entries = block["models"] or block["strengths"] or block["by_model"] or {}
        for name, one in entries.items():
            print(f"  {name:<40} {_interval(one)}")
        if block["agreement"]["spearman"]:
            print(f"  {'readers, mean Spearman correlation':<40} {_interval(block['agreement']['spearman'])}")
        for name, words in JUDGE.items() if block["judge"] else ():
            print(f"  {words:<40} {_interval(block['judge'][name])}")
    print(f"page: {page}")
    print(next_line("review", "export", study))


def _interval(one: Mapping[str, Any]) -> str:
    value = "-" if one["value"] is None else f"{one['value']:z.2f}"
    bounds = one["reason"] if one["low"] is None else f"{one['low']:z.2f} to {one['high']:z.2f}"
    return f"{value}  {bounds}"


def export(
    study: StudyArgument,
    to: Path | None = typer.Option(None, metavar="DIR", help="Folder; default: STUDY/export."),
    as_json: AsJson = False,
) -> None:
    """Write answers as CSV and Parquet with their dictionary, drawn regions, and the frozen study with its hash.

    Example: plantain review export studies/pilot --to answers
    """
    from plantain.review.results.writing import write_export

    opened = open_study(study)
    with closing(Ratings.open(opened)) as ratings:
        target = to or study / "export"
        names, answers = write_export(opened, ratings, target), len(ratings.current())
    if as_json:
        document = {"to": str(target), "files": names, "answers": answers, "hash": opened.digest}
        print_json(document)
        return
    print(f"{target}: {counted(answers, 'answer')}; {', '.join(name for name in names if '/' not in name)}")


def import_(
    study: StudyArgument,
    files: list[Path] = typer.Argument(
        ..., metavar="FILE...", help="CSV: source or case, model, criteria, reader."
    ),
    as_json: AsJson = False,
) -> None:
    """Import ratings into a study as imported readers. Importing the same file again changes nothing.

    Example: plantain review import studies/pilot ana.csv ben.csv
    """
    opened = open_study(study)
    with closing(Ratings.open(opened)) as ratings:
        found = import_ratings(opened, ratings, files)
    if as_json:
        print_json({"imported": found})
        return
    for reader, answers in found.items():
        print(f"{reader}: {counted(answers, 'answer')}")
