"""`plantain judge`: a judge's card, other judges on stored edits, corrections, and prompts."""

from __future__ import annotations

from plantain.cli import LazyGroup

app = LazyGroup(
    "judge",
    "Measure a judge, judge stored edits again, correct a verdict, edit the prompts.",
    {
        "audit": (
            "plantain.cli.judge.audit:audit",
            "Make a judge's card: the uses that its verdicts are fit for",
        ),
        "rejudge": ("plantain.cli.judge.rejudge:rejudge", "Judge stored edits with other judges or prompts"),
        "override": (
            "plantain.cli.judge.override:override",
            "Correct a verdict by hand, with a name and a reason",
        ),
        "prompts": (
            "plantain.cli.judge.prompts:prompts",
            "Write the prompt templates into a folder, to edit them",
        ),
    },
)
