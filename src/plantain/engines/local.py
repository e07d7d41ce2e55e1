"""The engine of one machine: a process for each core, so that pixels never hold up the event loop."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, TypeVar

from plantain.engines.contract import Ran, machine_kind

if TYPE_CHECKING:
    from multiprocessing.popen_forkserver import Popen

T = TypeVar("T")

VARIABLES = {"PYTHONSAFEPATH": "1", "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning"}
"""They import no code of the working directory, and hide a warning about a process that was stopped at once."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that stop a run."""


def _begin_worker() -> None:
    """Leave signals that stop a run to the parent, die with it, and keep to one core."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    import cv2

    cv2.setNumThreads(1)


def _die_with_parent() -> None:
    """End this worker when its parent process has ended, for whatever reason.

    The system's own signal comes too late: a worker is the fork server's child, and that lives as long as a worker.
    """
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


class _Worker(ForkServerProcess):
    """A process that does not import the caller's script.

    Otherwise a script without `if __name__ == "__main__"` would start its run again in every worker.
    """

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Popen:  # noqa: N802 (the name that multiprocessing calls)
        main = vars(sys.modules["__main__"])
        kept: dict[str, object] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
        main["__spec__"] = None
        try:
            return ForkServerProcess._Popen(process_obj)
        finally:
            main.update(kept)

    def terminate(self) -> None:
        """End it when the pool is broken; SIGTERM is ignored, since it may be sent to the whole group."""
        self.kill()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Context(ForkServerContext):
    Process = _Worker


class LocalEngine:
    """An engine that runs work in processes of this machine, started with the first work and after failures.

    Args:
        preload: modules that are imported before the processes are forked.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._preload = list(preload)
        self._pool: ProcessPoolExecutor | None = None
        self._changing = threading.Lock()
        self._cores = cores()

    async def run(self, role: str, function: Callable[..., T], arguments: Sequence[object]) -> Ran[T]:
        """Run a module-level function in a worker process; all roles share the processes. See `WorkEngine`."""
        loop = asyncio.get_running_loop()
        try:
            with _safe_path():
                pool = self._processes()
                with _interrupts_held_back():
                    computed = loop.run_in_executor(pool, function, *arguments)
            value = await computed
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = None
            return Ran(None, machine_kind(), lost="a process died (out of memory?)")
        return Ran(value, machine_kind())

    def close(self) -> None:
        """End the processes; the next work starts new ones."""
        with self._changing:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _processes(self) -> ProcessPoolExecutor:
        with self._changing:
            if self._pool is None:
                context = _Context()
                context.set_forkserver_preload(self._preload)
                self._pool = ProcessPoolExecutor(self._cores, mp_context=context, initializer=_begin_worker)
            return self._pool


@contextmanager
def _safe_path() -> Iterator[None]:
    """Set the variables for the fork server and the resource tracker, which start with the first process."""
    before = {name: os.environ.get(name, "") for name in VARIABLES}
    os.environ.update(VARIABLES)
    try:
        yield
    finally:
        os.environ.update(before)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Block the signals that stop a run while a process is started, which inherits that and never receives them.

    So does the fork server. `timeout`, Slurm, shells and a closing terminal send them to the whole group, and only the
    parent, which finishes the calls in flight, may act on them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
