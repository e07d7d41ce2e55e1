"""The engine of a Ray cluster: actors that we place, hand one piece of work at a time, and replace when they are lost.

Ray repeats nothing here (`max_task_retries=0`, `max_restarts=0`): a worker that dies may have done what it was asked,
so whether it is asked again is decided, counted and journalled by `calls`, like every other call.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, cast

from plantain.engines.actor import RemoteWorker
from plantain.engines.contract import EngineState, Ran
from plantain.engines.joining import host_and_port, in_one_line, join
from plantain.engines.packing import PictureStore, pack, unpack
from plantain.engines.shared import NotShared
from plantain.version import __version__

P = ParamSpec("P")
T = TypeVar("T")

LOOK_S = 5.0
"""How often it is looked whether the cluster has room for more workers, where their number is "auto"."""

SHORT = 3
"""Looks in a row that found work waiting and no worker, after which the cluster is said to have no room."""

FAILED_STARTS = 5
"""Workers in a row that could not be started, without one that could, after which there will be none..."""

FAILED_FOR_S = 60.0
"""...at once where each failed by what it is, and after so long where they died: machines may be lost and replaced."""

SEEN_S = 2.0
"""How often it is looked whether the cluster's head is there."""

GONE_S = 15.0
"""After which it is gone. Ray itself ends every process of a cluster 60 s after its head was lost."""

REMEMBERED = 64
"""Pictures that are kept in the cluster's memory for the next work that needs them."""

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}


class ClusterGone(Exception):
    """The cluster's head is lost, and with it everything that was asked of its workers."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one worker takes of the cluster: processors, GPUs, main memory in GB, and resources of the user's own."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory_gb: float = 0.0
    others: tuple[tuple[str, float], ...] = ()

    @property
    def named(self) -> dict[str, float]:
        """By Ray's names."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory_gb * 2**30, **dict(self.others)}
        return {name: amount for name, amount in amounts.items() if amount}

    @property
    def words(self) -> str:
        """For messages, e.g. "1 CPU and 1 GPU"."""
        parts = [f"{self.memory_gb:g} GB of memory"] if self.memory_gb else []
        parts += [f"{amount:g} {name}" for name, amount in self.named.items() if name != "memory"]
        return " and ".join(sorted(parts))


@dataclass(frozen=True, slots=True)
class Staff:
    """Which workers there are to be for a role: what each takes, and how many; None for as many as there is room."""

    need: Need
    workers: int | None = None


@dataclass(eq=False, slots=True)
class _Hand:
    """A worker as the head knows it."""

    actor: Any
    kind: str = ""


@dataclass(eq=False)
class _Pool:
    """Workers of one kind of need, which serve every role that has it."""

    staff: Staff
    idle: asyncio.Queue[_Hand] = field(default_factory=asyncio.Queue)
    ready: set[_Hand] = field(default_factory=set)
    starting: set[asyncio.Task[None]] = field(default_factory=set)
    asked: bool = False
    waiting: int = 0
    failures: int = 0
    failing_since: float = 0.0
    short: int = 0
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""


class RayEngine:
    """Workers of a Ray cluster. Belongs to the event loop that opened it.

    Args:
        address: of the cluster; "local" begins one on this machine that ends with this process.
        staff: by role; the role "" is for all that are not named.
        store: a folder that all workers share, for pictures; None where they travel.
    """

    remote = True

    def __init__(self, address: str, staff: Mapping[str, Staff], store: PictureStore | None = None) -> None:
        self._address, self._store = address, store
        self._staff = staff
        self._pools: dict[Staff, _Pool] = {}
        self._pictures: OrderedDict[str, Any] = OrderedDict()
        self._heads = ("", 0)
        self._done = self._lost = self._busy = 0
        self._watches: list[asyncio.Task[None]] = []
        self._ray: Any = None
        self._worker: Any = None
        self._there: dict[str, float] = {}
        self._begun = False
        self._gone = asyncio.Event()

    @property
    def state(self) -> EngineState:
        """How it stands."""
        pools = self._pools.values()
        workers, queued = sum(len(pool.ready) for pool in pools), sum(pool.waiting for pool in pools)
        short = {pool.staff.need.words for pool in pools if pool.short >= SHORT}
        return EngineState(
            "ray", workers, self._busy, queued, self._done, self._lost, ", nor for ".join(sorted(short))
        )

    @property
    def room(self) -> int:
        """Workers that it is to have, at least one; of "auto", as many as there is room for now."""
        self._make_pools()
        return max(1, sum(self._wanted(pool) for pool in self._pools.values()))

    def open(self) -> None:
        """Connects to the cluster, or begins one. Raises InputError where there is none, or no Ray."""
        self._ray, self._begun = join(self._address)
        self._heads = host_and_port(self._ray.get_runtime_context().gcs_address)
        self._worker = self._ray.remote(RemoteWorker)
        self._there = self._ray.cluster_resources()
        self._make_pools()

    async def aclose(self) -> None:
        """Ends the workers, and the cluster where it was begun here."""
        for watch in self._watches:
            watch.cancel()
        for pool in self._pools.values():
            for task in pool.starting:
                task.cancel()
            await asyncio.gather(*pool.starting, return_exceptions=True)
            for hand in pool.ready:
                self._end(hand)
        self._pools.clear()
        self._pictures.clear()
        if self._ray is not None and self._begun and not self._gone.is_set():
            await asyncio.to_thread(self._ray.shutdown)
        self._ray = None

    async def run(self, role: str, function: Callable[..., T], arguments: Sequence[object]) -> Ran[T]:
        """Runs a function on a worker of the role; see `WorkEngine`."""
        assert self._ray is not None, "the engine is not open"
        if not self._watches:
            self._watches = [
                asyncio.create_task(self._keep_staffed()),
                asyncio.create_task(self._keep_seeing()),
            ]
        pool = self._pools[self._staff.get(role, self._staff[""])]
        if not pool.asked:
            pool.asked = True
            self._hire(pool)
        hand = await self._take(pool)
        if hand is None:
            return Ran(None, broken=pool.why)
        self._busy += 1
        try:
            answer = await self._unless_gone(self._ask(hand, function, arguments))
        except ClusterGone as error:
            self._lost += 1
            pool.ready.discard(hand)
            return Ran(None, hand.kind, broken=str(error))
        except NotShared as error:  # of this machine, which reads what was answered
            pool.idle.put_nowait(hand)
            return Ran(None, hand.kind, broken=str(error))
        except self._ray.exceptions.RayTaskError as error:  # what the function raised
            pool.idle.put_nowait(hand)
            if isinstance(error.cause, NotShared):
                return Ran(None, hand.kind, broken=str(error.cause))
            if isinstance(error.cause, ImportError):
                lacking = f"{error.cause}; install on every machine the extras that this one has"
                return Ran(None, hand.kind, broken=f"a worker of the cluster lacks a package: {lacking}")
            raise (error.cause or error) from None
        except self._ray.exceptions.RayError as error:
            self._lost += 1
            self._give_up(pool, hand)
            return Ran(None, hand.kind, lost=in_one_line(error))
        except BaseException:  # cancelled: it computes on, so nothing can be asked of it
            self._give_up(pool, hand)
            raise
        finally:
            self._busy -= 1
        self._done += 1
        pool.idle.put_nowait(hand)
        return Ran(cast(T, answer), hand.kind)

    async def _unless_gone(self, asked: Coroutine[Any, Any, object]) -> object:
        """What was asked for. Raises ClusterGone when the cluster's head is lost before that."""
        asking, gone = asyncio.ensure_future(asked), asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise ClusterGone(self._why_gone())
        finally:
            gone.cancel()
            asking.cancel()

    def _why_gone(self) -> str:
        return (
            f"the Ray cluster at {self._address!r} is gone: its head has not answered for {GONE_S:g} s; start the "
            "cluster again, then the same command goes on"
        )

    async def _keep_seeing(self) -> None:
        """Notices that the cluster's head is lost: Ray would end this process for it, later and without a word."""
        # Of looks, not of the clock: this process may have been held up itself.
        failing_since: float | None = None
        while not self._gone.is_set():
            try:
                _, writer = await asyncio.wait_for(asyncio.open_connection(*self._heads), SEEN_S)
                writer.close()
                failing_since = None
            except (OSError, TimeoutError):
                failing_since = failing_since or time.monotonic()
                if time.monotonic() - failing_since > GONE_S:
                    self._gone.set()
                    for pool in self._pools.values():
                        pool.why = self._why_gone()
                        pool.broken.set()
            await asyncio.sleep(SEEN_S)

    async def _ask(self, hand: _Hand, function: Callable[..., T], arguments: Sequence[object]) -> object:
        work, files = await self._in_thread(pack, (function, tuple(arguments)), self._store)
        pictures = [self._put(name, data) for name, data in files.items()]
        answer, names, *found = await hand.actor.run.remote(work, list(files), *pictures)
        return await self._in_thread(unpack, answer, dict(zip(names, found, strict=True)), self._store)

    async def _in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """In a thread where pictures are on shared storage and reading them is waiting; otherwise at once."""
        if self._store is None:
            return function(*args, **kwargs)
        return await asyncio.to_thread(function, *args, **kwargs)

    def _put(self, name: str, data: bytes) -> object:
        """The picture in the cluster's memory, for this and the next work that needs it."""
        if name not in self._pictures:
            self._pictures[name] = self._ray.put(data)
        self._pictures.move_to_end(name)
        while len(self._pictures) > REMEMBERED:
            self._pictures.popitem(last=False)
        return self._pictures[name]

    # --- workers ------------------------------------------------------------------------------------

    def _make_pools(self) -> None:
        for staff in self._staff.values():
            self._pools.setdefault(staff, _Pool(staff))

    async def _take(self, pool: _Pool) -> _Hand | None:
        """A free worker; None where there will be none."""
        pool.waiting += 1
        getting = asyncio.ensure_future(pool.idle.get())
        breaking = asyncio.ensure_future(pool.broken.wait())
        try:
            await asyncio.wait({getting, breaking}, return_when=asyncio.FIRST_COMPLETED)
            return getting.result() if getting.done() else None
        except asyncio.CancelledError:
            if getting.done() and not getting.cancelled():  # it came at the very moment
                pool.idle.put_nowait(getting.result())
            raise
        finally:
            pool.waiting -= 1
            breaking.cancel()
            if not getting.done():
                getting.cancel()

    async def _keep_staffed(self) -> None:
        looking = threading.Thread()
        while True:
            for pool in self._pools.values():
                if pool.asked:  # workers of a role that has no work would stand in the way of those that have
                    self._hire(pool)
                    self._look_for_room(pool)
            # A lost head holds up whoever asks it until Ray ends the process: never this thread.
            if not looking.is_alive():
                looking = threading.Thread(target=self._look, daemon=True)
                looking.start()
            await asyncio.sleep(LOOK_S)

    def _look(self) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._there = self._ray.cluster_resources()

    def _look_for_room(self, pool: _Pool) -> None:
        """Notes what is wanting where work waits and no worker of the pool finds a place."""
        short = pool.waiting and not (pool.ready or pool.failures or self._gone.is_set())
        pool.short = pool.short + 1 if short else 0

    def _hire(self, pool: _Pool) -> None:
        lacking = self._wanted(pool) - len(pool.ready) - len(pool.starting)
        for _ in range(min(-lacking, pool.idle.qsize())):  # others need the room
            hand = pool.idle.get_nowait()
            pool.ready.discard(hand)
            self._end(hand)
        for _ in range(lacking):
            task = asyncio.create_task(self._start(pool))
            pool.starting.add(task)
            task.add_done_callback(pool.starting.discard)

    def _wanted(self, pool: _Pool) -> int:
        if pool.staff.workers is not None:
            return pool.staff.workers
        there = self._there
        for other in self._pools.values():  # those whose number is stated take their part first
            if other.staff.workers is not None or other.staff.need.gpus > pool.staff.need.gpus:
                taken, number = other.staff.need.named, self._wanted(other)
                there = {name: amount - number * taken.get(name, 0.0) for name, amount in there.items()}
        need = pool.staff.need.named
        fits = max(0, int(min(there.get(name, 0.0) / amount for name, amount in need.items())))
        alike = [other for other in self._pools.values() if other is pool or _competes(other, pool)]
        return min(fits, max(1, fits // len(alike)))

    async def _start(self, pool: _Pool) -> None:
        need = pool.staff.need
        options = {
            "num_cpus": need.cpus,
            "num_gpus": need.gpus,
            "resources": dict(need.others),
            "max_restarts": 0,
            "max_task_retries": 0,
            "max_concurrency": 1,
            "scheduling_strategy": "SPREAD",
            **({"memory": int(need.memory_gb * 2**30)} if need.memory_gb else {}),
        }
        shared = None if self._store is None else self._store.on_workers()
        hand = _Hand(self._worker.options(**options).remote(ENVIRONMENT, shared, __version__))
        try:
            hand.kind = await hand.actor.kind.remote()
        except self._ray.exceptions.RayError as error:
            now = time.monotonic()
            pool.failing_since = pool.failing_since if pool.failures else now
            pool.failures += 1
            pool.why = f"no worker could be started on the cluster: {in_one_line(error)}"
            long = now - pool.failing_since >= FAILED_FOR_S or getattr(error, "actor_init_failed", False)
            if pool.failures >= FAILED_STARTS and long and not pool.ready:
                pool.broken.set()
            await asyncio.sleep(min(LOOK_S, 0.2 * 2**pool.failures))
            return
        except asyncio.CancelledError:
            self._end(hand)
            raise
        pool.failures = 0
        pool.ready.add(hand)
        pool.idle.put_nowait(hand)

    def _give_up(self, pool: _Pool, hand: _Hand) -> None:
        """A worker of which nothing more is expected; another one takes its place."""
        pool.ready.discard(hand)
        self._end(hand)
        self._hire(pool)

    def _end(self, hand: _Hand) -> None:
        if self._gone.is_set():
            return  # nobody is left who could end it; it ends when it loses us
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(hand.actor, no_restart=True)


def _competes(other: _Pool, pool: _Pool) -> bool:
    """Whether both take as many workers as there is room for, from the same room."""
    return other.asked and other.staff.workers is None and other.staff.need.gpus == pool.staff.need.gpus
