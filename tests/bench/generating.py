"""Outputs that are generated in this process, by editors of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.small_bench import Brightener
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary


def made(benchmark: Benchmark, run: Path, wanted: ArmRequest | None = None, **options: object) -> RunSummary:
    wanted = wanted or ArmRequest()
    return asyncio.run(generate(benchmark, run, wanted, Terms(wanted.models), **options))  # type: ignore[arg-type]


def by(editor: Brightener, **fields: object) -> ArmRequest:
    return ArmRequest(own={editor.name: editor}, **fields)  # type: ignore[arg-type]
