"""`plantain train`: training on a benchmark or a release."""

from __future__ import annotations

from plantain.cli import LazyGroup

app = LazyGroup(
    "train",
    "Train open editors on pairs or preferences; measure the value of edits as training data.",
    {
        "finetune": (
            "plantain.cli.train.editors:finetune",
            "Fine-tune an open editor on n samples per task and measure it on others",
        ),
        "dpo": ("plantain.cli.train.editors:dpo", "Train an open editor on a release's preferences"),
        "utility": (
            "plantain.cli.train.utility:utility",
            "Measure if training with edits helps on real held-out images",
        ),
    },
)
