"""The viewer over 100,000 tasks: its pages by the clock, beside a bare FastAPI with one SQLite query of 50 rows.

The journal is filled by its own bulk writer; requests go over loopback, one after another, in turn with the bare one's.
Targets: the first page under 300 ms, also the very first of a fresh server.

Run: python benchmarks/viewer.py --scratch FOLDER [--tasks 100000]
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import sys
import time
import urllib.request
from pathlib import Path

from fastapi import FastAPI

from plantain.journal import JournalReader
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.journal.questions.browsing import TaskOrder, TaskQuery, page_of
from plantain.review.web.run_view import RunView
from plantain.review.web.server import create_viewer
from plantain.review.web.thumbnails import Thumbnails
from simulated.beside import served
from simulated.million import fill, make_catalogue, pictures

FIRST_MS = 300.0
TIMES = 15


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=100_000)
    asked = parser.parse_args()
    run = asked.scratch / f"viewed-{asked.tasks}"
    if not run.exists():
        asked.scratch.mkdir(parents=True, exist_ok=True)
        catalogue = asked.scratch / f"catalogue-{asked.tasks}"
        make_catalogue(catalogue, asked.tasks)
        asyncio.run(fill(run, catalogue, asked.tasks - 50, write=False))
    with JournalReader.open(run) as reader:
        total = sum(reader.counts().values())
        middle = page_of(reader, TaskQuery(), size=1, after="8").tasks[0].place
        recent = page_of(reader, TaskQuery(), size=50, order=TaskOrder.RECENT).tasks[-1].place
    viewer, stop = served(create_viewer(RunView(run)))
    bare, stop_bare = served(_bare(run / JOURNAL_NAME))
    cold = _ms(viewer + "/")
    paths = {
        "first page": "/",
        "a page in the middle": f"/?after={middle}",
        "newest first": "/?order=recent",
        "newest first, second page": f"/?order=recent&after={recent}",
        "one state": "/?state=failed",
        "judges differ (none does: every task is asked)": "/?differ=any",
        "words that no task has": "/?text=nowhere",
        "one task": f"/task/{middle}",
        "counters": "/api/standing",
        "what there is to filter by (kept half a minute)": "/api/offered",
    }
    plain = statistics.median(_ms(bare + "/") for _ in range(TIMES))
    print(f"{total} tasks; bare FastAPI and one query of 50 rows: {plain:.1f} ms")
    print(f"{'very first page of a fresh server':<52} {cold:7.1f} ms, {cold / plain:6.1f} times the bare one")
    found = {}
    for name, path in paths.items():
        slow = name.startswith(("judges", "words", "what"))
        found[name] = statistics.median(_ms(viewer + path) for _ in range(3 if slow else TIMES))
        print(f"{name:<52} {found[name]:7.1f} ms, {found[name] / plain:6.1f} times the bare one", flush=True)
    _thumbnails(asked.scratch)
    stop()
    stop_bare()
    return 0 if max(cold, found["first page"]) < FIRST_MS else 1


def _thumbnails(folder: Path) -> None:
    files = pictures(folder / "pictures", 50)
    store = Thumbnails()
    for what in ("made", "kept"):
        begun = time.perf_counter()
        for number, data in enumerate(files):
            store.of(str(number), lambda data=data: data, synthetic=True)
        print(
            f"a thumbnail of 1024 x 1024, {what}: {1000 * (time.perf_counter() - begun) / len(files):.2f} ms"
        )


def _ms(url: str) -> float:
    begun = time.perf_counter()
    with urllib.request.urlopen(url) as answer:
        answer.read()
    return 1000 * (time.perf_counter() - begun)


def _bare(journal: Path) -> FastAPI:
    connection = sqlite3.connect(f"file:{journal}?mode=ro", uri=True, check_same_thread=False)
    app = FastAPI()

    @app.get("/")
    def first() -> list[list[str]]:
        rows = connection.execute("SELECT id, finding, state FROM task ORDER BY id LIMIT 50")
        return [list(row) for row in rows.fetchall()]

    return app


if __name__ == "__main__":
    sys.exit(main())
