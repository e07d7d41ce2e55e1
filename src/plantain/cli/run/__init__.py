"""`plantain run`: maintenance of runs and catalogues."""

from __future__ import annotations

from plantain.cli import LazyGroup

app = LazyGroup(
    "run",
    "Maintain runs and catalogues: retry, merge, consent, withdraw, quarantine.",
    {
        "retry": (
            "plantain.cli.run.retry:retry",
            "Make ended tasks pending again, chosen by outcome or state",
        ),
        "merge": ("plantain.cli.run.merge:merge_runs", "Join the runs of all shards of a plan into one run"),
        "consent": (
            "plantain.cli.run.consent:consent",
            "List the images sent to each provider, with the agreement",
        ),
        "withdraw": (
            "plantain.cli.run.consent:withdraw",
            "Remove a patient or images with everything derived from them",
        ),
        "quarantine": (
            "plantain.cli.run.quarantine:quarantine",
            "Release or mask images that may identify a patient",
        ),
    },
)
