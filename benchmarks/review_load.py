"""Fifty readers at once: how long it takes to save an answer, beside a bare FastAPI with one SQLite insert.

Targets: no error, 95th percentile under 150 ms; the ratio to the bare one is printed, since machines differ.
"""

import argparse
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from fastapi import FastAPI, Request

from plantain.review.ratings import Ratings
from plantain.review.room.server import create_app
from simulated.beside import served
from simulated.readers import ScriptedReader, noise_study

READERS = 50
PAUSE_S = 1.0
"""Between two answers of one reader: a fast reader; people take 6 seconds and more."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, default=15)
    answers = parser.parse_args().answers
    with tempfile.TemporaryDirectory() as folder:
        study = noise_study(Path(folder) / "study", cases=300)
        ratings = Ratings.open(study)
        tokens = [ratings.invite()[1] for _ in range(READERS)]
        address, stop = served(create_app(study, ratings))
        readers = [ScriptedReader(address, token) for token in tokens]
        for reader in readers:
            reader.sign_in()
            reader.ask("/api/case/b1/0")
        errors = _together([lambda r=reader: _read(r, answers) for reader in readers])
        stop()
        ours = [second for reader in readers for second in reader.seconds]
        ratings.close()
        address, stop = served(_bare(Path(folder) / "bare.sqlite"))
        plain = [ScriptedReader(address, "") for _ in range(READERS)]
        errors += _together([lambda r=reader: _insert(r, answers) for reader in plain])
        stop()
        bare = [second for reader in plain for second in reader.seconds]
    ours95, bare95 = (statistics.quantiles(one, n=20)[-1] * 1000 for one in (ours, bare))
    print(f"{READERS} readers, {len(ours)} answers, {errors} errors")
    print(
        f"95th percentile: {ours95:.0f} ms; bare FastAPI and one insert: {bare95:.0f} ms; ratio {ours95 / bare95:.1f}"
    )
    return 0 if not errors and ours95 < 150 else 1


def _read(reader: ScriptedReader, answers: int) -> None:
    for _ in reader.read(answers):
        time.sleep(PAUSE_S)


def _insert(reader: ScriptedReader, answers: int) -> None:
    for number in range(answers):
        begun = time.monotonic()
        reader.ask("/insert", {"n": number, "value": "tie"})
        reader.seconds.append(time.monotonic() - begun)
        time.sleep(PAUSE_S)


def _bare(path: Path) -> FastAPI:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE answer(id INTEGER PRIMARY KEY, value TEXT)")
    app, turn = FastAPI(), threading.Lock()

    @app.post("/insert")
    async def insert(request: Request) -> dict[str, int]:
        said = await request.json()
        with turn:
            connection.execute("INSERT INTO answer(value) VALUES (?)", (str(said["value"]),))
        return {"saved": 1}

    return app


def _together(work: list) -> int:
    errors = []

    def guarded(one) -> None:
        try:
            one()
        except Exception as error:  # noqa: BLE001, what went wrong is counted
            errors.append(error)
            print(error, file=sys.stderr)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(errors)


if __name__ == "__main__":
    sys.exit(main())
