"""`plantain train`: learning from a benchmark or a release; one module per sub-command."""

from __future__ import annotations

from plantain.cli.terminal.groups import LazyGroup

app = LazyGroup(
    "train",
    "Train open editors on pairs or preferences, judges on verdicts, and probes of findings; measure the result.",
    {
        "finetune": (
            "plantain.cli.train.finetune",
            "an open editor on n samples of each task, measured on others",
        ),
        "dpo": ("plantain.cli.train.dpo", "on a release's preferences, after supervised steps"),
        "judge": (
            "plantain.cli.train.judge",
            "a vision-language judge on the verdicts of a run or a release",
        ),
        "probe": ("plantain.cli.train.probe", "a classifier of findings on labelled pictures, with a card"),
        "probe-check": ("plantain.cli.train.probe_check", "a probe measured on other labelled pictures"),
        "separability": (
            "plantain.cli.train.separability",
            "whether edits give themselves away by their traces",
        ),
        "utility": ("plantain.cli.train.utility", "whether training with edits helps on real pictures"),
    },
)
