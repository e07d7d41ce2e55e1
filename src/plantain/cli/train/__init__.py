"""`plantain train`: learning from a benchmark or a release; one module per sub-command."""

from __future__ import annotations

from plantain.cli.subcommands import Subcommands

app = Subcommands(
    "train",
    "Train open editors on pairs, or on preferences, and measure what they learned.",
    {
        "finetune": "an InstructPix2Pix on n samples of each task, measured on others",
        "dpo": "on a release's preferences, after supervised steps",
    },
)
