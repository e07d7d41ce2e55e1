"""`plantain bench`: measuring editing models; one module per sub-command, imported when it is asked for."""

from __future__ import annotations

from plantain.cli.terminal.groups import LazyGroup

app = LazyGroup(
    "bench",
    "Measure models that edit medical images: data in, outputs, scores, tables.",
    {
        "demo": (
            "plantain.cli.bench.demo:demo",
            "a small benchmark from real images, offline editors, a leaderboard",
        ),
        "check": ("plantain.cli.bench.check:check", "what is wrong with a benchmark, one line a problem"),
        "leakage": (
            "plantain.cli.bench.check:leakage",
            "images of a benchmark that also occur in a catalogue, release or folder",
        ),
        "describe": (
            "plantain.cli.bench.describe:describe",
            "organs, tasks, sizes of regions: what a benchmark consists of",
        ),
        "prepare": ("plantain.cli.bench.prepare:prepare", "a benchmark from raw pairs of images"),
        "from-build": (
            "plantain.cli.bench.from_build:from_build",
            "a benchmark with exact regions from any build",
        ),
        "generate": (
            "plantain.cli.bench.generate:generate_outputs",
            "run editors over a benchmark, or take outputs in",
        ),
        "score": ("plantain.cli.bench.score:score", "metrics and judges over what was generated"),
        "table": ("plantain.cli.bench.table:table", "the leaderboard: HTML, CSV, LaTeX, JSON"),
        "attention": (
            "plantain.cli.bench.attention:attention",
            "attention of open editors, against the region",
        ),
        "rank": ("plantain.cli.bench.rank:rank", "how metrics agree with people"),
    },
)
