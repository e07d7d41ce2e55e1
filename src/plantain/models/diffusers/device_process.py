"""The process of one device, as seen from the run: started, handed batches, buried when it has died."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from typing import ClassVar

from plantain.models.diffusers.jobs import Batch, Done
from plantain.models.diffusers.quiet import OFFLINE
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind


class DeviceProcess:
    """The process of one device, started when it is first needed, and again when it has died.

    Attributes:
        module: what is run as it: python -m MODULE FD DEVICE.
    """

    module: ClassVar[str] = "plantain.models.diffusers.worker"

    def __init__(self, device: str) -> None:
        self.device = device
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the worker

    def send(self, batch: Batch) -> None:
        """Hands it a batch; when it is gone, the next `receive` says so."""
        with contextlib.suppress(OSError):
            if self._connection is None:
                self._start()
            assert self._connection is not None
            self._connection.send(batch)

    def receive(self) -> list[Done] | None:
        """What it sends next: a batch's results; None when another batch has left the device.

        Raises:
            EOFError, OSError: it is gone.
        """
        if self._connection is None:
            raise EOFError
        message: list[Done] | str = self._connection.recv()
        return None if isinstance(message, str) else message

    def close(self) -> None:
        """Ends the process."""
        self._hang_up()
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
            self.module,
            str(theirs.fileno()),
            self.device,
        ]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env={**os.environ, **OFFLINE},
                pass_fds=(theirs.fileno(),),
            )
        self._connection = Connection(ours.detach())

    def bury(self) -> Outcome:
        """After it has gone: how it ended. The next `send` starts another."""
        self._hang_up()
        if self._process is None:
            return Outcome(OutcomeKind.TRANSPORT, f"the process of {self.device} could not be started")
        code = self._process.wait()
        self._process = None
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", "replace").strip().splitlines()
        self._output.truncate(0)
        self._output.seek(0)
        how = f"was killed by signal {-code} (out of memory?)" if code < 0 else f"ended with status {code}"
        last = f": {one_line(lines[-1])}" if lines else ""
        return Outcome(OutcomeKind.TRANSPORT, f"the process of {self.device} {how}{last}")

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
