"""What becomes of a batch, and of those beside it, where memory or a device is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from models.diffusers.engine_jobs import Cramped, job, run
from plantain.models.diffusers.engine import Engine, is_out_of_memory
from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import stable_diffusion
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


def test_one_edit_too_large_for_the_device_halts_with_what_to_change() -> None:
    engine, loading = Engine("cpu"), Loading(Path("x"), "instruct-pix2pix")
    engine._runners[loading] = Cramped(room=0)
    done = run(engine, loading, [job(0), job(1)])
    assert all(one.outcome.fatal for one in done)
    assert "offload" in done[0].outcome.reason


def test_pipelines_make_room_for_one_that_does_not_fit_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, closed = Engine("cpu"), []

    class Large(Cramped):
        def __init__(self, loading: Loading, device: str) -> None:
            if engine._runners:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            super().__init__(room=9)

        def close(self) -> None:
            closed.append(self)

    monkeypatch.setitem(stable_diffusion.RUNNERS, "instruct-pix2pix", Large)
    for name in ("a", "b"):
        (done,) = run(engine, Loading(Path(name), "instruct-pix2pix"), [job()])
        assert done.outcome.ok
    assert len(closed) == 1


def test_an_idle_pipeline_goes_before_a_batch_is_halved() -> None:
    """What was loaded for another editor is given up first: it waits, and this batch is being computed."""
    engine, closed = Engine("cpu"), list[str]()

    class Beside(Cramped):
        def close(self) -> None:
            closed.append("idle")
            runner.room = 9

    runner, loading = Cramped(room=1), Loading(Path("x"), "instruct-pix2pix")
    engine._runners |= {Loading(Path("idle"), "instruct-pix2pix"): Beside(room=9), loading: runner}
    done = run(engine, loading, [job(number) for number in range(4)])
    assert all(one.outcome.ok for one in done)
    assert (closed, runner.sizes) == (["idle"], [4, 4])


def test_memory_faults_are_told_from_others() -> None:
    assert is_out_of_memory(torch.OutOfMemoryError("x"))
    assert is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
