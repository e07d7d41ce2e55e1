"""`plantain bench`: benchmarks of editing models."""

from __future__ import annotations

from plantain.cli import LazyGroup

app = LazyGroup(
    "bench",
    "Measure models that edit medical images: data in, outputs, scores, tables.",
    {
        "demo": ("plantain.cli.bench.demo:demo", "Build, run and score a small benchmark offline"),
        "check": ("plantain.cli.bench.check:check", "List the problems of a benchmark, one per line"),
        "leakage": (
            "plantain.cli.bench.check:leakage",
            "Find a benchmark's images in a catalogue, release or folder",
        ),
        "describe": (
            "plantain.cli.bench.describe:describe",
            "Describe a benchmark: organs, tasks, region sizes",
        ),
        "prepare": ("plantain.cli.bench.prepare:prepare", "Make a benchmark from raw pairs of images"),
        "from-build": (
            "plantain.cli.bench.prepare:from_build",
            "Make a benchmark with exact regions from a build",
        ),
        "generate": (
            "plantain.cli.bench.generate:generate_outputs",
            "Run editors over a benchmark, or import outputs",
        ),
        "score": ("plantain.cli.bench.score:score", "Score outputs with metrics and judges"),
        "table": (
            "plantain.cli.bench.table:table",
            "Make the leaderboard: a table, a page, CSV, LaTeX, JSON",
        ),
        "attention": (
            "plantain.cli.bench.attention:attention",
            "Compare the attention of open editors with the region",
        ),
        "rank": ("plantain.cli.bench.rank:rank", "Compare metrics with human ratings"),
    },
)
