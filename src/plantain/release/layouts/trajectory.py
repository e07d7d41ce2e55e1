"""The trajectory layout of every release: one line of JSON per task with every round, verdict and image reference."""

from __future__ import annotations

from plantain.release.layouts.contract import Layout, write_originals
from plantain.release.plan import TRAJECTORIES
from plantain.release.released_images import ReleasedImages
from plantain.release.staging import Staging


def write_trajectories(staging: Staging, released: ReleasedImages) -> None:
    """Write every task's record in the order of the ids, and the originals that were planned as files."""
    staging.write_chunks(TRAJECTORIES, lambda: (record + b"\n" for record in staging.records()))
    write_originals(staging, released)


LAYOUT = Layout(write_trajectories)
