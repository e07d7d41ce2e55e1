"""`plantain prompts`: choosing the words in which a judge is asked."""

from __future__ import annotations

from plantain.cli.terminal.groups import LazyGroup

app = LazyGroup(
    "prompts",
    "Choose the words in which a hosted judge is asked.",
    {"compare": ("plantain.cli.prompts_compare", "the same stored edits judged under two sets of prompts")},
)
