"""What becomes of a batch, and of those beside it, where memory or a device is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from models.diffusers.engine_jobs import Cramped, job, run
from plantain.models.diffusers.engine import Engine
from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.pixels.arrays import Pixels
from plantain.records import Outcome, OutcomeKind


def test_too_little_memory_halves_the_batch_and_says_so() -> None:
    engine, runner, loading = Engine("cpu"), Cramped(room=2), Loading(Path("x"), "instruct-pix2pix")
    engine._runners[loading] = runner
    done = run(engine, loading, [job(number) for number in range(7)])
    assert all(one.outcome.ok for one in done)
    assert runner.sizes == [7, 4, 2, 2, 2, 1]
    assert "did not fit into memory" in str(done[-1].record["said"])
    runner.sizes.clear()
    run(engine, loading, [job(number) for number in range(3)])
    assert runner.sizes == [2, 1]  # what was learned stays


class Picky(Cramped):
    """Cannot draw what another's seed says; loses its device at the next."""

    def edit(self, jobs: Sequence[Job], steering: Steering) -> list[Pixels | Outcome]:
        if any(job.seed == 1 for job in jobs):
            raise ValueError("prompt is too long")
        if any(job.seed == 2 for job in jobs):
            raise RuntimeError("CUDA error: device-side assert triggered")
        return super().edit(jobs, steering)


def test_edit_that_cannot_be_drawn_spoils_no_other_and_a_lost_device_ends_the_process() -> None:
    engine, loading = Engine("cpu"), Loading(Path("x"), "instruct-pix2pix")
    engine._runners[loading] = Picky(room=9)
    done = run(engine, loading, [job(0), job(1), job(3)])
    assert [one.outcome.kind for one in done] == [OutcomeKind.OK, OutcomeKind.MALFORMED, OutcomeKind.OK]
    assert "prompt is too long" in done[1].outcome.reason
    with pytest.raises(RuntimeError, match="device-side"):
        run(engine, loading, [job(2)])
