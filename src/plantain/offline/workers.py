"""Worker processes for what the offline models compute, so that pixels never hold up the event loop."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from plantain.records import Outcome, OutcomeKind

if TYPE_CHECKING:
    from multiprocessing.popen_forkserver import Popen

P = ParamSpec("P")
T = TypeVar("T")

PRELOAD = ["plantain.offline.editor", "plantain.offline.judge"]

_pool: ProcessPoolExecutor | None = None
_users = 0
_changing = threading.Lock()


def _begin_worker() -> None:
    """A worker leaves Ctrl-C to its parent, dies with it, and keeps to one core."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    import cv2

    cv2.setNumThreads(1)


def _die_with_parent() -> None:
    """Ends this worker when the process that computes is gone, however it went.

    The system's own signal comes too late: a worker is the fork server's child, and that lives while a worker does.
    """
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


class _Worker(ForkServerProcess):
    """A process that never runs the caller's script again: what it computes is ours, so it needs nothing of it.

    Otherwise a script without `if __name__ == "__main__"` would begin its run once more in every worker.
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


class _Context(ForkServerContext):
    Process = _Worker


def _workers() -> ProcessPoolExecutor:
    global _pool
    with _changing:
        if _pool is None:
            context = _Context()
            context.set_forkserver_preload(PRELOAD)
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            _pool = ProcessPoolExecutor(cores, mp_context=context, initializer=_begin_worker)
        return _pool


def close_workers() -> None:
    """Ends the worker processes; the next computation starts new ones."""
    global _pool
    with _changing:
        pool, _pool = _pool, None
    if pool is not None:
        pool.shutdown(wait=True, cancel_futures=True)


def use_workers() -> None:
    """Counts one more user of the workers, in any thread; each calls `leave_workers` in the end."""
    global _users
    with _changing:
        _users += 1


def leave_workers() -> None:
    """The last user to leave ends the workers; blocks while they finish what they compute."""
    global _users
    with _changing:
        _users -= 1
        last = _users == 0
    if last:
        close_workers()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C waits while a process is started, and the process inherits that: it never hears of it at all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def compute(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Outcome:
    """Runs a module-level function in a worker; a worker that died becomes a `transport` outcome."""
    global _pool
    pool = _workers()
    loop = asyncio.get_running_loop()
    assert not kwargs, "a worker takes positional arguments"
    try:
        with _interrupts_held_back():
            computed = loop.run_in_executor(pool, function, *args)
        return await computed
    except BrokenProcessPool:
        if _pool is pool:
            _pool = None
        return Outcome(OutcomeKind.TRANSPORT, "a worker process died (out of memory?)")
