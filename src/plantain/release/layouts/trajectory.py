"""The trajectory layout: one line of JSON per task with every round, verdict and image reference.

It comes with every release: training of judges and refiners reads it, and so does `plantain import`.
"""

from __future__ import annotations

from collections.abc import Iterator

from plantain.release.plan import ReleaseFile
from plantain.release.staging import HashingFile, Staging

PATH = "trajectories/trajectories.jsonl"


def write_trajectories(staging: Staging) -> None:
    """Writes every task's record in the order of the ids."""

    def fill(file: HashingFile) -> Iterator[ReleaseFile]:
        for record in staging.records():
            file.write(record + b"\n")
        return iter(())

    staging.write(PATH, "record", fill)
