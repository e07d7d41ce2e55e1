"""The process of one device: python -m plantain.models.diffusers.worker FD DEVICE. Jobs come in, results go out.

Torch stays out of the process that runs the build: its work delays no other call, and when it is killed or crashes,
one edit is lost and reported as lost.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

from plantain.models.diffusers.jobs import Done, Job

_PR_SET_PDEATHSIG = 1


def serve(connection: Connection, run: Callable[[Job], Done]) -> None:
    """Receive jobs over a connection and send back each one's result, until the other side closes."""
    try:
        while True:
            connection.send(run(connection.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def main(fd: int, device: str) -> None:
    """Serve jobs on a device over the socket with this file descriptor, until the other side closes."""
    for number in (signal.SIGINT, signal.SIGHUP):  # they stop the parent, which ends this process
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()
    from plantain.models.diffusers.engine import Engine

    serve(Connection(fd), Engine(device).run)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
