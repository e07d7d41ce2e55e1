"""The process of one device: python -m plantain.models.diffusers.worker FD DEVICE. Batches come in, results go out.

Torch stays out of the process that runs the build: what it computes holds up no other call, and when it is killed or
crashes, one batch is lost and said to be lost.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from multiprocessing.connection import Connection

_PR_SET_PDEATHSIG = 1


def main(fd: int, device: str) -> None:
    """Serves batches until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    connection = Connection(fd)
    import cv2

    from plantain.models.diffusers.engine import Engine
    from plantain.models.diffusers.quiet import quiet_libraries

    cv2.setNumThreads(1)
    quiet_libraries()
    engine = Engine(device)
    while True:
        try:
            batch = connection.recv()
        except EOFError:
            return
        connection.send(engine.run(batch))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
