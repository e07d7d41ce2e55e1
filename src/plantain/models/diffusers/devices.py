"""The processes of the devices: requests that wait together go out as batches, to whichever device is free."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from plantain.models.diffusers.jobs import Batch, Done, Job, Loading, Steering
from plantain.models.diffusers.quiet import OFFLINE
from plantain.pixels.decode import one_line
from plantain.records import InputError, Outcome, OutcomeKind

GATHER_S = 0.03
"""How long a device that could take more edits waits for others that are about to arrive."""

USUAL_BATCH = 4
"""Edits together on a GPU, unless told otherwise; on a processor a batch gains nothing."""


def usual_batch(device: str) -> int:
    """Edits together on a device, unless told otherwise: one on Apple's, where batches are not reliable (diffusers'
    own advice for "mps")."""
    return USUAL_BATCH if device.startswith("cuda") else 1


def calls_in_flight(devices: Iterable[str], batch_size: int | None) -> int:
    """Edits that keep devices busy: for each what it computes, and as much again that waits for it."""
    return sum(2 * (batch_size or usual_batch(device)) for device in devices)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """One edit that waits for a device.

    Attributes:
        loading, steering: what runs it, and how.
        canvas: width and height at which it runs: only equal ones go together.
        job: the edit.
        most: how many may go together; None for the device's usual.
        answer: where the result goes.
    """

    loading: Loading
    steering: Steering
    canvas: tuple[int, int]
    job: Job
    most: int | None
    answer: Future[Done] = field(default_factory=Future)

    def goes_with(self, other: Order) -> bool:
        """Whether both can be in one batch."""
        mine = self.loading, self.steering, self.canvas, self.most
        return mine == (other.loading, other.steering, other.canvas, other.most)


class Devices:
    """Devices that serve one queue, each with a process and a thread that talks to it.

    Args:
        names: of torch, e.g. ("cuda:0", "cuda:1").
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._waiting: list[Order] = []
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(_Worker(name),), name=f"device {name}", daemon=True)
            for name in self.names
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, order: Order) -> Future[Done]:
        """Puts an edit into the queue."""
        with self._changed:
            assert not self._closed, "submitted to devices that were given up"
            self._waiting.append(order)
            self._changed.notify_all()
        return order.answer

    def close(self) -> None:
        """Ends the processes once what they compute is done; what still waits is cancelled."""
        with self._changed:
            self._closed = True
            for order in self._waiting:
                order.answer.cancel()
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _serve(self, worker: _Worker) -> None:
        try:
            while (orders := self._next(worker)) is not None:
                if orders:
                    self._answer(orders, worker)
        finally:
            worker.close()

    def _answer(self, orders: list[Order], worker: _Worker) -> None:
        first = orders[0]
        results = worker.run(Batch(first.loading, first.steering, tuple(order.job for order in orders)))
        for order, done in zip(orders, results, strict=True):
            order.answer.set_result(done)

    def _next(self, worker: _Worker) -> list[Order] | None:
        """The order that has waited longest and those that go with it; None when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            most = self._waiting[0].most or usual_batch(worker.device)
            if len(self._waiting) < most:
                self._changed.wait_for(lambda: len(self._waiting) >= most or self._closed, GATHER_S)
            if not self._waiting:
                return None if self._closed else []
            first = self._waiting[0]
            chosen = [order for order in self._waiting if order.goes_with(first)][:most]
            self._waiting = [order for order in self._waiting if order not in chosen]
        return [order for order in chosen if order.answer.set_running_or_notify_cancel()]


class _Worker:
    """The process of one device, started when it is first needed, and again when it has died."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._told = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the worker

    def run(self, batch: Batch) -> list[Done]:
        """The results of a batch, or why the process gave none."""
        try:
            if self._connection is None:
                self._start()
            assert self._connection is not None
            self._connection.send(batch)
            results: list[Done] = self._connection.recv()
        except (EOFError, OSError):
            return self._lost(batch)
        return results

    def close(self) -> None:
        """Ends the process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            try:
                self._process.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        command = [
            sys.executable,
            "-m",
            "plantain.models.diffusers.worker",
            str(theirs.fileno()),
            self.device,
        ]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._told,
                stderr=self._told,
                env={**os.environ, **OFFLINE},
                pass_fds=(theirs.fileno(),),
            )
        self._connection = Connection(ours.detach())

    def _lost(self, batch: Batch) -> list[Done]:
        """The process is gone: everything in the batch may be tried again, by another one."""
        assert self._process is not None
        self.close_connection()
        code = self._process.wait()
        self._process = None
        self._told.seek(0)
        lines = self._told.read().decode("utf-8", "replace").strip().splitlines()
        self._told.truncate(0)
        self._told.seek(0)
        how = f"was killed by signal {-code} (out of memory?)" if code < 0 else f"ended with status {code}"
        last = f": {one_line(lines[-1])}" if lines else ""
        outcome = Outcome(OutcomeKind.TRANSPORT, f"the process of {self.device} {how}{last}")
        return [Done(None, outcome, {"device": self.device}) for _ in batch.jobs]

    def close_connection(self) -> None:
        """Hangs up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def device_names(said: str) -> tuple[str, ...]:
    """The devices of a setting: those named, or every GPU there is, or the processor.

    Raises:
        InputError: an empty name between commas.
    """
    if said:
        names = tuple(name.strip() for name in said.split(","))
        if not all(names):
            raise InputError(
                f'providers.diffusers.device: {said!r}; name devices like "cuda:0,cuda:1" or "cpu"'
            )
        return tuple("cuda:0" if name == "cuda" else name for name in names)
    import torch

    if torch.cuda.is_available():
        return tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
    return ("mps",) if torch.backends.mps.is_available() else ("cpu",)


_shared: dict[tuple[str, ...], tuple[Devices, int]] = {}
_lock = threading.Lock()


def share(names: tuple[str, ...]) -> Devices:
    """The devices of that name, one set for all editors of this process; each `share` ends with a `release`."""
    with _lock:
        devices, users = _shared.get(names) or (Devices(names), 0)
        _shared[names] = (devices, users + 1)
        return devices


def release(devices: Devices) -> None:
    """Gives a share back; the last one ends the processes, and with them what they held in memory."""
    with _lock:
        held, users = _shared[devices.names]
        assert held is devices
        if users > 1:
            _shared[devices.names] = (devices, users - 1)
            return
        del _shared[devices.names]
    devices.close()
