"""The engine of a Ray cluster: places actors, gives each one piece of work at a time, and replaces lost ones.

Ray repeats no work (`max_task_retries=0`, `max_restarts=0`): a worker that dies may have finished its work, so `calls`
decides, counts and journals each repetition, as for any other call.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from plantain.engines.contract import ROLES, EngineSection, Ran, WorkersSection, machine_kind
from plantain.engines.joining import host_and_port, in_one_line, join
from plantain.records import InputError
from plantain.records.messages import counted
from plantain.version import __version__

T = TypeVar("T")

LOOK_S = 5.0
"""Seconds between checks whether the cluster has room for more workers, where their number is "auto"."""

SHORT = 3
"""Checks in a row with waiting work and no worker, after which the cluster is reported to have no room."""

FAILED_STARTS, FAILED_FOR_S = 5, 60.0
"""After so many failed starts in a row there will be no worker: at once where plantain itself fails, else after so
many seconds, since machines may be lost and replaced."""

SEEN_S, GONE_S = 2.0, 15.0
"""Seconds between checks whether the cluster's head answers, and after which it is gone. Ray itself ends every process
of a cluster 60 s after its head was lost, without a word."""

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}


class RemoteWorker:
    """A Ray actor on a worker's machine: it does one piece of work at a time and keeps loaded models.

    Args:
        environment: environment variables to set.
        version: plantain's version on the head. Raise InputError if another is installed here, as images may differ.
    """

    def __init__(self, environment: Mapping[str, str], version: str) -> None:
        if version != __version__:
            raise InputError(
                f"plantain {__version__} on a worker's machine, {version} on the head's: install one"
            )
        os.environ.update(environment)
        import cv2

        cv2.setNumThreads(1)

    def kind(self) -> str:
        """Return the devices and library versions of the worker's machine, as `machine_kind` does."""
        return machine_kind()

    def run(self, work: bytes) -> object:
        """Call a pickled (function, arguments) and return the result; unpickled here to name a missing package."""
        function, arguments = pickle.loads(work)
        return function(*arguments)


@dataclass(eq=False, slots=True)
class _Worker:
    actor: Any
    kind: str = ""


@dataclass(eq=False, slots=True)
class _Pool:
    """Workers with the same needs, which serve every role that has these."""

    section: WorkersSection
    idle: asyncio.Queue[_Worker] = field(default_factory=asyncio.Queue)
    ready: set[_Worker] = field(default_factory=set)
    starting: set[asyncio.Task[None]] = field(default_factory=set)
    used: bool = False
    waiting: int = 0
    failures: int = 0
    failing_since: float = 0.0
    short: int = 0
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""


class RayEngine:
    """An engine that runs work on a Ray cluster, for the event loop that opened it."""

    def __init__(self, section: EngineSection) -> None:
        self._section = section
        self._pools: dict[str, _Pool] = {}
        self._lost = self._busy = 0
        self._watches: list[asyncio.Task[None]] = []
        self._head = ("", 0)
        self._gone = asyncio.Event()
        self._ray: Any = None
        self._actor: Any = None
        self._resources: dict[str, float] = {}
        self._joined = False

    @property
    def line(self) -> str:
        """The engine's state for the progress line, e.g. "ray: 4 workers, 3 busy, 10 queued"."""
        pools = set(self._pools.values())
        workers = counted(sum(len(pool.ready) for pool in pools), "worker")
        queued = sum(pool.waiting for pool in pools)
        lost = f", {self._lost} lost" if self._lost else ""
        short = ", nor for ".join(sorted({str(pool.section) for pool in pools if pool.short >= SHORT}))
        room = f", no room in the cluster for a worker of {short}" if short else ""
        return f"ray: {workers}, {self._busy} busy, {queued} queued{lost}{room}"

    @property
    def room(self) -> int:
        """The intended number of workers, at least 1; for "auto", as many as currently fit in the cluster."""
        return max(1, sum(self._wanted(pool) for pool in set(self._pools.values())))

    def open(self) -> None:
        """Connect to the cluster, or start one. Raise InputError if it cannot be reached or Ray is not installed."""
        self._ray, self._joined = join(self._section.address)
        self._head = host_and_port(self._ray.get_runtime_context().gcs_address)
        self._actor = self._ray.remote(RemoteWorker)
        self._resources = self._ray.cluster_resources()
        for role in ("", *ROLES):
            section = self._section.of(role)
            alike = (pool for pool in self._pools.values() if pool.section == section)
            self._pools[role] = next(alike, None) or _Pool(section)

    async def aclose(self) -> None:
        """End the workers and the connection that `open` made; a cluster that it started ends with it."""
        for watch in self._watches:
            watch.cancel()
        for pool in set(self._pools.values()):
            for task in pool.starting:
                task.cancel()
            await asyncio.gather(*pool.starting, return_exceptions=True)
            for worker in pool.ready:
                self._end(worker)
        self._pools.clear()
        if self._ray is not None and self._joined and not self._gone.is_set():
            await asyncio.to_thread(self._ray.shutdown)
        self._ray = None

    async def run(self, role: str, function: Callable[..., T], arguments: Sequence[object]) -> Ran[T]:
        """Run a function on a worker of the role; see `WorkEngine`."""
        assert self._ray is not None, "the engine is not open"
        if not self._watches:
            self._watches = [
                asyncio.create_task(watch()) for watch in (self._keep_staffed, self._keep_seeing)
            ]
        pool = self._pools.get(role, self._pools[""])
        if not pool.used:
            pool.used = True
            self._hire(pool)
        worker = await self._take(pool)
        if worker is None:
            return Ran(None, broken=pool.why)
        self._busy += 1
        try:
            asking = asyncio.ensure_future(
                worker.actor.run.remote(pickle.dumps((function, tuple(arguments))))
            )
            if not await self._first(asking, self._gone):
                self._lost += 1
                return Ran(None, worker.kind, broken=pool.why)
            answer = asking.result()
        except self._ray.exceptions.RayTaskError as error:  # raised by the function
            pool.idle.put_nowait(worker)
            if isinstance(error.cause, ImportError):
                missing = f"{error.cause}; install on every machine the extras that this one has"
                return Ran(
                    None, worker.kind, broken=f"a package is missing on a worker of the cluster: {missing}"
                )
            raise (error.cause or error) from None
        except self._ray.exceptions.RayError as error:
            self._lost += 1
            self._replace(pool, worker)
            return Ran(None, worker.kind, lost=in_one_line(error))
        except BaseException:  # cancelled, but its worker still computes
            self._replace(pool, worker)
            raise
        finally:
            self._busy -= 1
        pool.idle.put_nowait(worker)
        return Ran(cast(T, answer), worker.kind)

    # --- workers ------------------------------------------------------------------------------------

    async def _take(self, pool: _Pool) -> _Worker | None:
        """Return a free worker; None where there will be none."""
        pool.waiting += 1
        getting = asyncio.create_task(pool.idle.get())
        try:
            return getting.result() if await self._first(getting, pool.broken) else None
        except asyncio.CancelledError:
            if getting.done() and not getting.cancelled():  # it came at the very moment
                pool.idle.put_nowait(getting.result())
            raise
        finally:
            pool.waiting -= 1

    @staticmethod
    async def _first(task: asyncio.Task[Any], event: asyncio.Event) -> bool:
        """Wait for either; return True if the task is done, and cancel it otherwise."""
        waiting = asyncio.create_task(event.wait())
        try:
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            return task.done()
        finally:
            waiting.cancel()
            if not task.done():
                task.cancel()

    async def _keep_seeing(self) -> None:
        """Notice that the cluster's head is lost, and end whatever waits for its workers."""
        failing_since: float | None = None
        while failing_since is None or time.monotonic() - failing_since < GONE_S:
            try:
                _, writer = await asyncio.wait_for(asyncio.open_connection(*self._head), SEEN_S)
                writer.close()
                failing_since = None
            except (OSError, TimeoutError):
                failing_since = failing_since or time.monotonic()
            await asyncio.sleep(SEEN_S)
        for pool in self._pools.values():
            pool.why = (
                f"the Ray cluster at {self._section.address!r} is gone: its head has not answered for {GONE_S:g} s; "
                "start the cluster again, then the same command resumes"
            )
            pool.broken.set()
        self._gone.set()

    async def _keep_staffed(self) -> None:
        looking = threading.Thread()
        while True:
            for pool in set(self._pools.values()):
                if pool.used:  # workers of a role without work would take the room of others
                    self._hire(pool)
                    wanting = pool.waiting and not (pool.ready or pool.failures)
                    pool.short = pool.short + 1 if wanting else 0
            if not looking.is_alive():  # in a thread that is not awaited: a lost head never answers
                looking = threading.Thread(target=self._look, daemon=True)
                looking.start()
            await asyncio.sleep(LOOK_S)

    def _look(self) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._resources = self._ray.cluster_resources()

    def _hire(self, pool: _Pool) -> None:
        missing = self._wanted(pool) - len(pool.ready) - len(pool.starting)
        for _ in range(min(-missing, pool.idle.qsize())):  # other roles need the resources
            worker = pool.idle.get_nowait()
            pool.ready.discard(worker)
            self._end(worker)
        for _ in range(missing):
            task = asyncio.create_task(self._start(pool))
            pool.starting.add(task)
            task.add_done_callback(pool.starting.discard)

    def _wanted(self, pool: _Pool) -> int:
        if isinstance(pool.section.workers, int):
            return pool.section.workers
        left, sharing = dict(self._resources), 0
        for other in set(self._pools.values()):  # a stated number comes first, then GPUs; the rest is shared
            if isinstance(other.section.workers, int) or other.section.gpus > pool.section.gpus:
                for name, amount in other.section.amounts.items():
                    left[name] = left.get(name, 0.0) - self._wanted(other) * amount
            elif other is pool or (other.used and other.section.gpus == pool.section.gpus):
                sharing += 1
        need = pool.section.amounts
        fits = max(0, int(min(left.get(name, 0.0) / amount for name, amount in need.items())))
        return min(fits, max(1, fits // sharing))

    async def _start(self, pool: _Pool) -> None:
        amounts = dict(pool.section.amounts)
        options = {
            "num_cpus": amounts.pop("CPU", 0.0),
            "num_gpus": amounts.pop("GPU", 0.0),
            **({"memory": int(amounts.pop("memory"))} if "memory" in amounts else {}),
            "resources": amounts,
            "max_restarts": 0,
            "max_task_retries": 0,
            "max_concurrency": 1,
            "scheduling_strategy": "SPREAD",
        }
        worker = _Worker(self._actor.options(**options).remote(ENVIRONMENT, __version__))
        try:
            worker.kind = await worker.actor.kind.remote()
        except self._ray.exceptions.RayError as error:
            now = time.monotonic()
            pool.failing_since = pool.failing_since if pool.failures else now
            pool.failures += 1
            pool.why = f"no worker could be started on the cluster: {in_one_line(error)}"
            final = now - pool.failing_since >= FAILED_FOR_S or getattr(error, "actor_init_failed", False)
            if pool.failures >= FAILED_STARTS and final and not pool.ready:
                pool.broken.set()
            await asyncio.sleep(min(LOOK_S, 0.2 * 2**pool.failures))
            return
        except asyncio.CancelledError:
            self._end(worker)
            raise
        pool.failures = 0
        pool.ready.add(worker)
        pool.idle.put_nowait(worker)

    def _replace(self, pool: _Pool, worker: _Worker) -> None:
        pool.ready.discard(worker)
        self._end(worker)
        self._hire(pool)

    def _end(self, worker: _Worker) -> None:
        if self._gone.is_set():
            return  # the cluster is gone; the worker ends when it loses this process
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(worker.actor, no_restart=True)
