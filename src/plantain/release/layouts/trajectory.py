"""The trajectory layout: one line of JSON per task with every round, verdict and image reference.

It comes with every release: training of judges and refiners reads it, and so does `plantain import`.
"""

from __future__ import annotations

from collections.abc import Iterator

from plantain.release.layouts.contract import Layout, write_originals
from plantain.release.pictures import Pictures
from plantain.release.plan import TRAJECTORIES, ReleaseFile
from plantain.release.staging import HashingFile, Staging


def write_trajectories(staging: Staging, pictures: Pictures) -> None:
    """Writes every task's record in the order of the ids, and the originals that were planned as files."""

    def fill(file: HashingFile) -> Iterator[ReleaseFile]:
        for record in staging.records():
            file.write(record + b"\n")
        return iter(())

    staging.write(TRAJECTORIES, "record", fill)
    write_originals(staging, pictures)


LAYOUT = Layout(write_trajectories)
