"""The process of one device, as seen from the run: started, given batches, restarted when it has died."""

from __future__ import annotations

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
    """The process of one device, started when it is first needed.

    Attributes:
        module: run as python -P -m MODULE FD DEVICE.
    """

    module: ClassVar[str] = "plantain.models.diffusers.worker"

    def __init__(self, device: str) -> None:
        self.device = device
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the worker

    def run(self, batch: Batch) -> list[Done]:
        """Return a batch's results; transport failures if the process died."""
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
        """End the process."""
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
