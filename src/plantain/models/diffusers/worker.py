"""The process of one device: python -m plantain.models.diffusers.worker FD DEVICE. Batches come in, results go out.

Torch stays out of the process that runs the build: what it computes holds up no other call, and when it is killed or
crashes, one batch is lost and said to be lost. The device works in the main thread; pictures are decoded before it and
encoded behind it in other threads, which OpenCV and Pillow leave to run beside it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import Queue

from plantain.models.diffusers.canvases import Drawing, Prepared, finish, prepare
from plantain.models.diffusers.jobs import DRAWN, Done

_PR_SET_PDEATHSIG = 1
_THREADS = 4
"""That encode at a time: one encodes a megapixel in about a tenth of a second."""


def serve(connection: Connection, draw: Callable[[Prepared], list[Drawing]]) -> None:
    """Answers batches in their order until the other side closes: `DRAWN`, then a list of `Done`, for each.

    Args:
        connection: whence `Batch` comes and whither results go.
        draw: what the device does with a batch whose pictures were read; its errors end the serving, after the
            results of earlier batches were sent.
    """
    ready: Queue[Future[Prepared] | None] = Queue(maxsize=1)
    drawn: Queue[list[Future[Done]] | None] = Queue(maxsize=2)
    one_sends = threading.Lock()

    def read() -> None:
        with ThreadPoolExecutor(1) as reading:
            try:
                while True:
                    ready.put(reading.submit(prepare, connection.recv()))
            except (EOFError, OSError):
                ready.put(None)

    def write() -> None:
        heard, ended = True, False
        try:
            for results in iter(drawn.get, None):
                done = [result.result() for result in results]
                with one_sends:
                    heard = heard and _sent(connection, done)
            ended = True
        finally:
            if not ended:  # whatever it is, the parent must not wait for these results
                traceback.print_exc()
                os._exit(1)

    threading.Thread(target=read, name="pictures in", daemon=True).start()
    writing = threading.Thread(target=write, name="pictures out", daemon=True)
    writing.start()
    with ThreadPoolExecutor(_THREADS) as encoding:
        try:
            for prepared in iter(ready.get, None):
                drawings = draw(prepared.result())
                with one_sends:
                    heard = _sent(connection, DRAWN)
                if not heard:
                    return
                drawn.put([encoding.submit(finish, drawing) for drawing in drawings])
        finally:
            drawn.put(None)
            writing.join()


def _sent(connection: Connection, message: object) -> bool:
    """Whether there was somebody to send it to."""
    try:
        connection.send(message)
    except OSError:
        return False
    return True


def main(fd: int, device: str) -> None:
    """Serves batches until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    connection = Connection(fd)
    import cv2

    from plantain.models.diffusers.quiet import quiet_libraries

    cv2.setNumThreads(1)
    quiet_libraries()
    from plantain.models.diffusers.engine import Engine

    serve(connection, Engine(device).draw)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
