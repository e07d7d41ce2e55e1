"""`plantain train`: learning from a benchmark or a release; one module per sub-command."""

from __future__ import annotations

from plantain.cli.terminal.groups import LazyGroup

app = LazyGroup(
    "train",
    "Train open editors on pairs or preferences; measure what training with edits is worth.",
    {
        "finetune": (
            "plantain.cli.train.finetune:finetune",
            "an open editor on n samples of each task, measured on others",
        ),
        "dpo": ("plantain.cli.train.dpo:dpo", "on a release's preferences, after supervised steps"),
        "utility": (
            "plantain.cli.train.utility:utility",
            "does training with edits help on real held-out images?",
        ),
    },
)
