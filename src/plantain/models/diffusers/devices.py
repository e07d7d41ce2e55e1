"""The queue of the devices: each edit goes to whichever device is free.

Edits are drawn one at a time, so that no image depends on others that wait. The caller decodes
originals and encodes results, so that a device's process only draws.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import ClassVar

from plantain.models.diffusers.jobs import Done, Job
from plantain.models.diffusers.quiet import OFFLINE
from plantain.pixels.decode import one_line
from plantain.records import InputError, Outcome, OutcomeKind

IN_FLIGHT = 3
"""Edits under way for each device, so that it never waits: one is decoded, one drawn and one encoded."""


class DeviceProcess:
    """The process that edits on one device, started with the first edit.

    Attributes:
        module: name of the module that the process runs, `python -P -m MODULE FD DEVICE`.
    """

    module: ClassVar[str] = "plantain.models.diffusers.worker"

    def __init__(self, device: str) -> None:
        self.device = device
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the worker

    def run(self, job: Job) -> Done:
        """Make an edit and return its result; a transport failure if the process died."""
        try:
            if self._connection is None:
                self._connection = self._start()
            self._connection.send(job)
            done: Done = self._connection.recv()
        except (EOFError, OSError):
            return Done(None, self._bury(), {"device": self.device})
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
        self._changing, self._closed = threading.Lock(), False
        self._waiting: SimpleQueue[tuple[Job, Future[Done]] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=(DeviceProcess(name),), name=name, daemon=True)
            for name in self.names
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> Future[Done]:
        """Queue an edit; return the future of its result."""
        answer: Future[Done] = Future()
        with self._changing:
            assert not self._closed, "submitted to closed devices"
            self._waiting.put((job, answer))
        return answer

    def close(self) -> None:
        """Cancel waiting edits, and end the processes when their current edit is done."""
        with self._changing:
            self._closed = True
        with contextlib.suppress(Empty):
            while waiting := self._waiting.get_nowait():
                waiting[1].cancel()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self, process: DeviceProcess) -> None:
        try:
            while waiting := self._waiting.get():
                job, answer = waiting
                if answer.set_running_or_notify_cancel():
                    answer.set_result(process.run(job))
        finally:
            process.close()


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
