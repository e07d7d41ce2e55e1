"""`plantain review`: reader studies; one module per sub-command, imported when it is asked for."""

from __future__ import annotations

from plantain.cli.terminal.groups import LazyGroup

app = LazyGroup(
    "review",
    "Reader studies: people judge, compare, rank and outline; and what their answers say.",
    {
        "new": (
            "plantain.cli.review.new:new",
            "freeze a study from a run, a benchmark's run, a release or pairs",
        ),
        "invite": ("plantain.cli.review.readers:invite", "a link for each reader"),
        "serve": ("plantain.cli.review.readers:serve", "serve a study to its readers"),
        "export": ("plantain.cli.review.answers:export", "answers as CSV and Parquet, with the frozen study"),
        "results": ("plantain.cli.review.answers:results", "what the answers say: page, JSON, LaTeX"),
        "import": ("plantain.cli.review.answers:import_", "ratings made elsewhere, as CSV"),
        "demo": ("plantain.cli.review.demo:demo", "a study on the demo's run with two simulated readers"),
        "plan": (
            "plantain.cli.review.plan:plan",
            "how many readers and cases show a difference, and their hours",
        ),
    },
)
