"""`plantain bench`: measuring editing models; one module per sub-command, imported when it is asked for."""

from __future__ import annotations

from plantain.cli.subcommands import Subcommands

app = Subcommands(
    "bench",
    "Measure models that edit medical images: data in, outputs, scores, tables.",
    {
        "demo": "a small benchmark from real images, offline editors, a leaderboard",
        "check": "what is wrong with a benchmark, one line a problem",
        "describe": "organs, tasks, sizes of regions: what a benchmark consists of",
        "prepare": "a benchmark from raw pairs of images",
        "from-build": "a benchmark with exact regions from any build",
        "generate": "run editors over a benchmark, or take outputs in",
        "score": "metrics and judges over what was generated",
        "table": "the leaderboard: HTML, CSV, LaTeX, JSON",
        "attend": "where open editors looked, against the region",
        "rank": "how metrics agree with people",
    },
)
