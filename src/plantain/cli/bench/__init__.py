"""`plantain bench`: measuring editing models; one module per sub-command, imported when it is asked for."""

from __future__ import annotations

from plantain.cli.terminal.groups import LazyGroup

app = LazyGroup(
    "bench",
    "Measure models that edit medical images: data in, outputs, scores, tables.",
    {
        "demo": (
            "plantain.cli.bench.demo",
            "a small benchmark from real images, offline editors, a leaderboard",
        ),
        "check": ("plantain.cli.bench.check", "what is wrong with a benchmark, one line a problem"),
        "overlap": (
            "plantain.cli.bench.overlap",
            "pictures of a benchmark that a catalogue, run or release shows too",
        ),
        "describe": (
            "plantain.cli.bench.describe",
            "organs, tasks, sizes of regions: what a benchmark consists of",
        ),
        "prepare": ("plantain.cli.bench.prepare", "a benchmark from raw pairs of images"),
        "from-build": ("plantain.cli.bench.from_build", "a benchmark with exact regions from any build"),
        "generate": ("plantain.cli.bench.generate", "run editors over a benchmark, or take outputs in"),
        "score": ("plantain.cli.bench.score", "metrics and judges over what was generated"),
        "table": ("plantain.cli.bench.table", "the leaderboard: HTML, CSV, LaTeX, JSON"),
        "attend": ("plantain.cli.bench.attend", "where open editors looked, against the region"),
        "version": ("plantain.cli.bench.sharing.version", "versions of a benchmark, and naming the next one"),
        "diff": ("plantain.cli.bench.sharing.diff", "what differs between two benchmarks"),
        "export": (
            "plantain.cli.bench.sharing.export",
            "a benchmark for others: card, licences, Parquet, checksums",
        ),
        "verify": ("plantain.cli.bench.sharing.verify", "whether an exported benchmark is what it says"),
        "hide": ("plantain.cli.bench.sharing.hide", "a public part of a benchmark, and a private one"),
        "pack": ("plantain.cli.bench.sharing.pack", "a run as a submission to a leaderboard"),
        "submit-check": ("plantain.cli.bench.sharing.submit_check", "whether a submission is whole"),
        "rescore": (
            "plantain.cli.bench.sharing.rescore",
            "a submission's scores, recomputed from its outputs",
        ),
        "site": ("plantain.cli.bench.sharing.site", "submissions as a static site"),
        "rank": ("plantain.cli.bench.rank", "how metrics agree with people"),
    },
)
