"""`plantain train`: learning from a benchmark or a release; one module per sub-command."""

from __future__ import annotations

from plantain.cli.terminal.groups import LazyGroup

app = LazyGroup(
    "train",
    "Train open editors on pairs, or on preferences, and measure what they learned.",
    {
        "finetune": (
            "plantain.cli.train.finetune",
            "an InstructPix2Pix on n samples of each task, measured on others",
        ),
        "dpo": ("plantain.cli.train.dpo", "on a release's preferences, after supervised steps"),
    },
)
