"""The queue of the devices: requests that wait together go out as batches, to whichever device is free.

The caller decodes originals and encodes results, so that a device's process only draws.
"""

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
from typing import ClassVar

from plantain.models.diffusers.jobs import Batch, Done, Job, Loading, Steering
from plantain.models.diffusers.quiet import OFFLINE
from plantain.pixels.decode import one_line
from plantain.records import InputError, Outcome, OutcomeKind

GATHER_S = 0.03
"""How long a device that could take more edits waits for others that are about to arrive."""

USUAL_BATCH = 4
"""Edits together on a GPU by default; on a CPU a batch gains nothing."""


def usual_batch(device: str) -> int:
    """Return the default number of edits in a batch on a device: 1 except on CUDA, since diffusers advises against
    batches on Apple's "mps"."""
    return USUAL_BATCH if device.startswith("cuda") else 1


def calls_in_flight(devices: Iterable[str], batch_size: int | None) -> int:
    """Return how many edits must run at once to keep devices busy: three batches each, in three stages."""
    return sum(3 * (batch_size or usual_batch(device)) for device in devices)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """One edit that waits for a device.

    Attributes:
        loading, steering: the pipeline and its settings.
        job: the edit.
        most: maximum number of edits in a batch; None for the device's default.
        answer: future that receives the result.
    """

    loading: Loading
    steering: Steering
    job: Job
    most: int | None
    answer: Future[Done] = field(default_factory=Future)

    def goes_with(self, other: Order) -> bool:
        """Return True if both edits can be computed in one batch."""
        mine = self.loading, self.steering, self.job.canvas.shape, self.most
        return mine == (other.loading, other.steering, other.job.canvas.shape, other.most)


class DeviceProcess:
    """The process that edits on one device, started with the first batch.

    Attributes:
        module: name of the module that the process runs, `python -P -m MODULE FD DEVICE`.
    """

    module: ClassVar[str] = "plantain.models.diffusers.worker"

    def __init__(self, device: str) -> None:
        self.device = device
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the worker

    def run(self, batch: Batch) -> list[Done]:
        """Compute a batch and return the results in the order of its jobs; transport failures if the process died."""
        try:
            if self._connection is None:
                self._connection = self._start()
            self._connection.send(batch)
            done: list[Done] = self._connection.recv()
        except (EOFError, OSError):
            outcome = self._bury()
            return [Done(None, outcome, {"device": self.device}) for _ in batch.jobs]
        return done

    def close(self) -> None:
        """End the process; kill it if it has not ended after 10 s."""
        self._hang_up()
        if self._process is not None:
            try:
                self._process.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", self.module, str(theirs.fileno()), self.device],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env={**os.environ, **OFFLINE},
                pass_fds=(theirs.fileno(),),
            )
        return Connection(ours.detach())

    def _bury(self) -> Outcome:
        """After it has died: how it ended."""
        self._hang_up()
        if self._process is None:
            return Outcome(OutcomeKind.TRANSPORT, f"the process of {self.device} could not be started")
        code = self._process.wait()
        self._process = None
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", "replace").strip().splitlines()
        self._output.seek(0)
        self._output.truncate()
        how = f"was killed by signal {-code} (out of memory?)" if code < 0 else f"ended with status {code}"
        last = f": {one_line(lines[-1])}" if lines else ""
        return Outcome(OutcomeKind.TRANSPORT, f"the process of {self.device} {how}{last}")

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Devices:
    """Devices that serve one queue, each with a process and a thread.

    Args:
        names: names of torch devices, e.g. ("cuda:0", "cuda:1").
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._waiting: list[Order] = []
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(DeviceProcess(name),), name=name, daemon=True)
            for name in self.names
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, order: Order) -> Future[Done]:
        """Queue an edit; return the future of its result."""
        with self._changed:
            assert not self._closed, "submitted to closed devices"
            self._waiting.append(order)
            self._changed.notify_all()
        return order.answer

    def close(self) -> None:
        """Cancel waiting edits, and end the processes when their current batch is done."""
        with self._changed:
            self._closed = True
            for order in self._waiting:
                order.answer.cancel()
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _serve(self, process: DeviceProcess) -> None:
        try:
            while orders := self._next(process.device):
                first = orders[0]
                batch = Batch(first.loading, first.steering, tuple(order.job for order in orders))
                for order, done in zip(orders, process.run(batch), strict=True):
                    order.answer.set_result(done)
        finally:
            process.close()

    def _next(self, device: str) -> list[Order]:
        """The order that has waited longest and those that go with it; [] when closed."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._closed or self._waiting)
                self._changed.wait_for(lambda: self._closed or self._full(device), GATHER_S)
                if self._closed:
                    return []
                alike = self._alike(device)
                self._waiting = [order for order in self._waiting if order not in alike]
                chosen = [order for order in alike if order.answer.set_running_or_notify_cancel()]
                if chosen:
                    return chosen

    def _full(self, device: str) -> bool:
        return not self._waiting or len(self._alike(device)) == self._most(device)

    def _alike(self, device: str) -> list[Order]:
        """At most a batch of the first order and those that go with it."""
        if not self._waiting:
            return []
        first = self._waiting[0]
        return [order for order in self._waiting if order.goes_with(first)][: self._most(device)]

    def _most(self, device: str) -> int:
        return self._waiting[0].most or usual_batch(device)


def device_names(named: str) -> tuple[str, ...]:
    """Return the devices that a setting such as "cuda:0,cuda:1" names; for "" every CUDA GPU, else MPS, else the CPU.

    Raises:
        InputError: a name between commas is empty.
    """
    if named:
        names = tuple(name.strip() for name in named.split(","))
        if not all(names):
            raise InputError(
                f'providers.diffusers.device: {named!r}; name devices like "cuda:0,cuda:1" or "cpu"'
            )
        return tuple("cuda:0" if name == "cuda" else name for name in names)
    import torch

    if torch.cuda.is_available():
        return tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
    return ("mps",) if torch.backends.mps.is_available() else ("cpu",)


_shared: dict[tuple[str, ...], tuple[Devices, int]] = {}
_lock = threading.Lock()


def share(names: tuple[str, ...]) -> Devices:
    """Return the `Devices` of these names, which all editors of this process share; call `release` afterwards."""
    with _lock:
        devices, users = _shared.get(names) or (Devices(names), 0)
        _shared[names] = (devices, users + 1)
        return devices


def release(devices: Devices) -> None:
    """Give up devices from `share`; the last user's call ends their processes, which frees the memory."""
    with _lock:
        _, users = _shared[devices.names]
        if users > 1:
            _shared[devices.names] = (devices, users - 1)
            return
        del _shared[devices.names]
    devices.close()
