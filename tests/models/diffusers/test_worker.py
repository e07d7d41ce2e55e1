"""A device's process without a device: batches are answered in order, until the other side closes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from plantain.models.diffusers.jobs import Batch, Done, Job, Loading, Steering
from plantain.models.diffusers.worker import serve
from plantain.records import OK

WAIT_S = 60.0


def batch(*seeds: int) -> Batch:
    jobs = tuple(Job(np.full((8, 8, 3), seed, np.uint8), "brighter", seed) for seed in seeds)
    return Batch(Loading(Path("x"), "instruct-pix2pix"), Steering(), jobs)


def brighter(asked: Batch) -> list[Done]:
    if any(job.seed == 9 for job in asked.jobs):
        raise RuntimeError("CUDA error: device-side assert triggered")
    return [Done(job.canvas + 1, OK, {"seed": job.seed}) for job in asked.jobs]


@pytest.fixture
def ends() -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = Pipe()
    with ours, theirs:
        yield ours, theirs


def test_batches_are_answered_in_order_until_the_other_side_closes(
    ends: tuple[Connection, Connection],
) -> None:
    ours, theirs = ends
    serving = threading.Thread(target=serve, args=(theirs, brighter))
    serving.start()
    ours.send(batch(1))
    ours.send(batch(2, 3))
    assert [done.record for done in ours.recv()] == [{"seed": 1}]
    both = ours.recv()
    assert [int(done.pixels[0, 0, 0]) for done in both] == [3, 4]
    ours.close()
    serving.join(WAIT_S)
    assert not serving.is_alive()


def test_a_lost_device_ends_the_process(ends: tuple[Connection, Connection]) -> None:
    ours, theirs = ends
    ours.send(batch(1))
    ours.send(batch(9))
    with pytest.raises(RuntimeError, match="CUDA error"):
        serve(theirs, brighter)
    assert [done.record["seed"] for done in ours.recv()] == [1]
