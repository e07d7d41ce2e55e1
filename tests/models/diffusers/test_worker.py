"""A device's process without a device: pictures are read and written beside the drawing, and answers come in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from plantain.models.diffusers import worker
from plantain.models.diffusers.canvases import Drawing, Prepared, prepare
from plantain.models.diffusers.jobs import DRAWN, Batch, Job, Loading, Steering
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_png
from plantain.records import OK, OutcomeKind

PICTURE = encode_png(np.random.default_rng(1).integers(0, 256, (40, 64, 3), dtype=np.uint8))
WAIT_S = 60.0


def batch(*seeds: int, picture: bytes = PICTURE) -> Batch:
    jobs = tuple(Job(picture, "brighter", seed, side=64) for seed in seeds)
    return Batch(Loading(Path("x"), "instruct-pix2pix"), Steering(), jobs)


def unchanged(prepared: Prepared) -> list[Drawing]:
    return [
        Drawing(one.canvas, OK, {"seed": one.job.seed}, one.frame) for one in prepared.originals.values()
    ] + [Drawing(None, outcome, {}) for outcome in prepared.faults.values()]


@pytest.fixture
def ends() -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = Pipe()
    with ours, theirs:
        yield ours, theirs


def test_pictures_are_read_and_written_while_the_device_draws(
    ends: tuple[Connection, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each drawing waits for what could not happen if the threads took turns: else it gives up, and says so."""
    ours, theirs = ends
    second_is_read, first_is_answered = threading.Event(), threading.Event()

    def noted(asked: Batch) -> Prepared:
        prepared = prepare(asked)
        if asked.jobs[0].seed == 2:
            second_is_read.set()
        return prepared

    def draw(prepared: Prepared) -> list[Drawing]:
        wanted = second_is_read if prepared.batch.jobs[0].seed == 1 else first_is_answered
        assert wanted.wait(WAIT_S), "nothing happened beside the drawing"
        return unchanged(prepared)

    monkeypatch.setattr(worker, "prepare", noted)
    serving = threading.Thread(target=worker.serve, args=(theirs, draw))
    serving.start()
    ours.send(batch(1))
    ours.send(batch(2, 3))
    assert ours.recv() == DRAWN
    (done,) = ours.recv()
    assert done.record == {"seed": 1}
    assert decode(done.picture).shape == (40, 64, 3)
    first_is_answered.set()
    assert ours.recv() == DRAWN
    assert [done.record["seed"] for done in ours.recv()] == [2, 3]
    ours.close()
    serving.join(WAIT_S)
    assert not serving.is_alive()


def test_unreadable_picture_is_an_outcome(ends: tuple[Connection, Connection]) -> None:
    ours, theirs = ends
    serving = threading.Thread(target=worker.serve, args=(theirs, unchanged))
    serving.start()
    ours.send(batch(1, picture=b"no"))
    assert ours.recv() == DRAWN
    assert [done.outcome.kind for done in ours.recv()] == [OutcomeKind.MALFORMED]
    ours.close()
    serving.join(WAIT_S)
    assert not serving.is_alive()


def test_earlier_results_are_sent_before_a_lost_device_ends_the_process(
    ends: tuple[Connection, Connection],
) -> None:
    ours, theirs = ends
    raised = list[BaseException]()

    def draw(prepared: Prepared) -> list[Drawing]:
        if prepared.batch.jobs[0].seed == 2:
            raise RuntimeError("CUDA error: device-side assert triggered")
        return unchanged(prepared)

    def serve() -> None:
        try:
            worker.serve(theirs, draw)
        except RuntimeError as error:
            raised.append(error)

    serving = threading.Thread(target=serve)
    serving.start()
    ours.send(batch(1))
    ours.send(batch(2))
    assert ours.recv() == DRAWN
    assert [done.record["seed"] for done in ours.recv()] == [1]
    serving.join(WAIT_S)
    assert "CUDA error" in str(raised[0])
