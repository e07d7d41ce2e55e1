"""`plantain run`: looking after runs and catalogues; one module per sub-command, imported when it is called."""

from __future__ import annotations

from plantain.cli.terminal.groups import LazyGroup

app = LazyGroup(
    "run",
    "Look after runs and catalogues: retry, merge, consent, withdraw, quarantine.",
    {
        "retry": ("plantain.cli.run.retry:retry", "make tasks pending again by how they ended"),
        "merge": ("plantain.cli.run.merge:merge_runs", "join the runs of all shards of a plan into one run"),
        "consent": ("plantain.cli.run.consent:consent", "list what a run sent where, under which agreement"),
        "withdraw": (
            "plantain.cli.run.withdraw:withdraw",
            "remove a patient or single images, and all that was made of them",
        ),
        "quarantine": (
            "plantain.cli.run.quarantine:quarantine",
            "release or mask images that may identify a person",
        ),
    },
)
