"""Scoring with a hosted judge at an address of this machine: python score_driver.py BENCH RUN SETTINGS."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.metrics.networks.encoders import Networks
from plantain.runs.settings.terms import load_terms

MODEL = "gemini/gemini-3.8-flash"

if __name__ == "__main__":
    bench, run, settings = map(Path, sys.argv[1:])
    judges = (JudgeName(MODEL, "P", True, 3),)
    wish = ScoreRequest(judges=judges, networks=Networks())
    terms = load_terms(settings, (MODEL,))
    summary = asyncio.run(score_run(run, Benchmark.load(bench), wish, terms=terms))
    print(summary)
    sys.exit(0 if summary.stopped is None else 1)
