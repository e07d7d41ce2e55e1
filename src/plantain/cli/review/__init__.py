"""`plantain review`: reader studies."""

from __future__ import annotations

from plantain.cli import LazyGroup

app = LazyGroup(
    "review",
    "Run reader studies: accept, rate, compare, rank and outline; analyse the answers.",
    {
        "new": (
            "plantain.cli.review.new:new",
            "Freeze a study of a run, a benchmark's run, a release or pairs",
        ),
        "invite": ("plantain.cli.review.readers:invite", "Make a link for each reader"),
        "serve": ("plantain.cli.review.readers:serve", "Serve a study to its readers"),
        "export": ("plantain.cli.review.answers:export", "Write answers as CSV, with the frozen study"),
        "results": ("plantain.cli.review.answers:results", "Analyse the answers: page or JSON"),
        "import": ("plantain.cli.review.answers:import_", "Import ratings from CSV files"),
        "demo": (
            "plantain.cli.review.demo:demo",
            "Make a study of the demo's run with two simulated readers",
        ),
        "plan": ("plantain.cli.review.plan:plan", "Plan readers and cases for a difference, with hours"),
    },
)
