"""The engine of a run: opened with it, watched while it works, and what became of it kept for `status`.

And of work that has no run: what is prepared or repeated there leaves no call, and may be done twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace

import orjson

from plantain.engines.cluster import RayEngine
from plantain.engines.contract import EngineState, WorkEngine, engine_in_place
from plantain.engines.repeating import EngineThread, engine_thread
from plantain.engines.shared import SharedPictures
from plantain.journal import DiskFull, Journal, JournalReader
from plantain.journal.disk.blobs import close_arrivals, open_arrivals, shared_blobs
from plantain.records.counts import counted
from plantain.runs.observer import ProgressObserver
from plantain.runs.settings.engine import EngineSection
from plantain.runs.settings.terms import Terms

OnWorker = Callable[[str, str], Awaitable[None]]

STATE = "engine.state"
"""Key of the run's meta: how the engine stood when the run last looked, as JSON; see `stored_state`."""

KINDS = "engine.kinds"
"""Key of the run's meta: model and step -> the kinds of workers that have answered, as JSON."""

NOTE_S = 5.0
"""How often it is looked how the engine stands."""

WINDOW = 24
"""Looks over which the rate is taken."""


@asynccontextmanager
async def engine_open(
    terms: Terms, journal: Journal, observer: ProgressObserver
) -> AsyncIterator[tuple[Terms, OnWorker]]:
    """The engine that the terms ask for, in place and watched until the block ends.

    Yields:
        The terms, with the engine's room in them; and what is to be told which kind of worker answered.

    Raises:
        InputError: there is no such cluster, or no Ray.
    """
    if terms.engine.kind == "local":
        yield terms, KindsMet(journal, observer.note).answered
        return
    with arrivals(journal) as store:
        engine = RayEngine(terms.engine.address, terms.engine.staff(), store)
        engine.open()
        before = engine_in_place.set(engine)
        try:
            observer.engine(lambda: engine.state)
            async with watching(engine, journal, terms.engine.address):
                yield replace(terms, room=engine.room), KindsMet(journal, observer.note).answered
        finally:
            engine_in_place.reset(before)
            await engine.aclose()


@contextlib.contextmanager
def engine_for_threads(section: EngineSection) -> Iterator[EngineThread | None]:
    """The engine that a section asks for, for threads; None where that is this process.

    Raises:
        InputError: there is no such cluster, or no Ray.
    """
    if section.kind == "local":
        yield None
        return
    with engine_thread(RayEngine(section.address, section.staff())) as engine:
        yield engine


@asynccontextmanager
async def engine_alone(section: EngineSection) -> AsyncIterator[int]:
    """The engine that a section asks for, in place until the block ends.

    Yields:
        Its workers; 0 where work stays in this process.

    Raises:
        InputError: there is no such cluster, or no Ray.
    """
    if section.kind == "local":
        yield 0
        return
    engine = RayEngine(section.address, section.staff())
    engine.open()
    before = engine_in_place.set(engine)
    try:
        yield engine.room
    finally:
        engine_in_place.reset(before)
        await engine.aclose()


@contextlib.contextmanager
def arrivals(journal: Journal) -> Iterator[SharedPictures | None]:
    """Where workers leave pictures while the block lasts; None for a run whose blobs no other machine sees."""
    blobs = shared_blobs(journal.run)
    if blobs is None:
        yield None
        return
    own = open_arrivals(blobs)
    journal.blobs.arriving = own
    try:
        yield SharedPictures(str(blobs), str(own))
    finally:
        journal.blobs.arriving = None
        close_arrivals(own)


class KindsMet:
    """Notices workers of another kind than those that answered before.

    Args:
        journal: the run's.
        note: told what a person should know, once.
    """

    def __init__(self, journal: Journal, note: Callable[[str], None]) -> None:
        self._journal, self._note = journal, note
        self._kinds: dict[str, list[str]] = orjson.loads(journal.reader.meta(KINDS) or "{}")

    async def answered(self, model: str, kind: str) -> None:
        """A worker of this kind has answered for a model; a second kind is said, and so is every further one."""
        known = self._kinds.setdefault(model, [])
        if kind in known:
            return
        known.append(kind)
        if len(known) > 1:
            self._note(
                f"{model} has answered on {len(known)} kinds of workers, whose pictures may differ in a bit: "
                f"{' | '.join(known)}; which one made what is recorded with each call"
            )
        await self._journal.set_meta(KINDS, orjson.dumps(self._kinds).decode())


@asynccontextmanager
async def watching(engine: WorkEngine, journal: Journal, address: str) -> AsyncIterator[None]:
    """Keeps in the journal how an engine stands and where, every few seconds until the block ends."""
    looks: deque[tuple[float, int]] = deque(maxlen=WINDOW)

    async def keep(*, ended: bool) -> None:
        looks.append((time.monotonic(), engine.state.done))
        (since, before), (now, done) = looks[0], looks[-1]
        rate = (done - before) / (now - since) if now > since else 0.0
        standing = {**asdict(engine.state), "address": address}
        record = {**standing, "per_s": round(rate, 3), "at": time.time(), "ended": ended}
        with contextlib.suppress(DiskFull):
            await journal.set_meta(STATE, orjson.dumps(record).decode())

    async def look() -> None:
        while True:
            await keep(ended=False)
            await asyncio.sleep(NOTE_S)

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await keep(ended=True)


def stored_state(reader: JournalReader) -> dict[str, object] | None:
    """How the engine of a run stood when it was last looked: what `EngineState` has, the cluster's address, pieces of
    work per second, when that was, and whether the run had ended. None where it had only this machine's processes.
    """
    stored = reader.meta(STATE)
    return None if stored is None else dict(orjson.loads(stored))


def joined(metas: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What a run remembers of the engines of the runs that it was merged from, by key of its meta.

    Every kind of worker that has answered, and of the clusters that which was looked at last, with all addresses.
    """
    kinds: dict[str, list[str]] = {}
    states: list[dict[str, object]] = []
    for meta in metas:
        for model, known in orjson.loads(meta.get(KINDS, "{}")).items():
            kinds[model] = list(dict.fromkeys([*kinds.get(model, []), *known]))
        if STATE in meta:
            states.append(orjson.loads(meta[STATE]))
    told = {KINDS: orjson.dumps(kinds).decode()} if kinds else {}
    if states:
        last = max(states, key=lambda state: float(str(state.get("at", 0.0))))
        addresses = dict.fromkeys(str(state["address"]) for state in states if "address" in state)
        told[STATE] = orjson.dumps({**last, "address": ", ".join(addresses), "ended": True}).decode()
    return told


def state_in_words(state: EngineState) -> str:
    """For the progress line."""
    lost = f", {state.lost} lost" if state.lost else ""
    room = f", no room in the cluster for a worker of {state.no_room_for}" if state.no_room_for else ""
    return f"{state.kind}: {counted(state.workers, 'worker')}, {state.busy} busy, {state.queued} queued{lost}{room}"
