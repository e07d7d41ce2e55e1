"""The table of what was run lists every setting that an open editor's fingerprint holds, as its calls recorded them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson

from bench.scored_run import EXACT, baselines, make_benchmark, make_run, plain_scores
from plantain.bench.leaderboard.page import write_leaderboard

RUNNING = {
    "bits": 8,
    "compile": True,
    "attention_backend": "native",
    "tf32": True,
    "vae_tiling": True,
    "step_cache": 0.1,
}


def record(**changes: object) -> str:
    usual: dict[str, object] = {
        "method": "flux-kontext",
        "weights": "w@1",
        "licence": "mit",
        "precision": "bfloat16",
        "device": "cuda:1",
        "settings": {"steps": 4},
        "geometry": {"mode": "fit"},
        "seed": 7,
    }
    return orjson.dumps({**usual, **changes}).decode()


def test_page_and_json_have_the_table(tmp_path: Path) -> None:
    """The outputs of one arm recorded in the journal as an open editor records them."""
    bench = make_benchmark(tmp_path / "bench", ("Skin",), 3)
    run = make_run(tmp_path / "run", bench, [*baselines(), EXACT], plain_scores, pictures=False)
    with closing(sqlite3.connect(run / "journal.sqlite")) as journal, journal:
        of_arm = "task IN (SELECT id FROM task WHERE finding = ?)"
        raw = record(running=RUNNING, loras=["a@1 x 0.5"])
        changed = journal.execute(f"UPDATE call SET raw = ? WHERE {of_arm}", (raw, EXACT.label)).rowcount
    text = write_leaderboard([run], tmp_path / "out", gallery=0).read_text(encoding="utf-8")
    for said in (
        "Settings of open editors",
        "bits 8",
        "attention_backend native",
        "step_cache 0.1",
        "a@1 x 0.5",
    ):
        assert said in text
    (row,) = orjson.loads((tmp_path / "out" / "leaderboard.json").read_bytes())["editors"]
    assert (row["model"], row["running"], row["outputs"]) == (EXACT.label, RUNNING, changed)
