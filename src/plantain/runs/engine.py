"""The engine of a run: opened with it, watched while it works, and its state kept for `status`.

It also opens the engine for work without a run, which makes no model call and may be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace

import orjson

from plantain.engines.cluster import RayEngine
from plantain.engines.contract import (
    EngineSection,
    EngineState,
    EngineThread,
    WorkEngine,
    engine_in_place,
    engine_thread,
)
from plantain.journal import DiskFull, Journal, JournalReader
from plantain.records.messages import counted
from plantain.runs.progress import ProgressObserver
from plantain.runs.terms import Terms

STATE = "engine.state"
"""Key of the run's meta: the engine's last recorded state, as JSON; see `stored_state`."""

NOTE_S, WINDOW = 5.0, 24
"""Seconds between two looks at the engine, and the looks over which the rate is taken."""


@asynccontextmanager
async def engine_open(terms: Terms, journal: Journal, observer: ProgressObserver) -> AsyncIterator[Terms]:
    """Open the terms' cluster and record its state until the block ends; yield terms with its number of places.

    Raises:
        InputError: the cluster does not answer, or Ray is not installed.
    """
    async with _in_place(terms.engine) as engine:
        observer.engine(lambda: engine.state)
        async with watching(engine, journal, terms.engine.address):
            yield replace(terms, room=engine.room)


@contextlib.contextmanager
def engine_for_threads(section: EngineSection) -> Iterator[EngineThread | None]:
    """Open a section's engine for calls from threads; yield None for this process. Raise as `engine_open`."""
    if section.kind == "local":
        yield None
        return
    with engine_thread(RayEngine(section)) as engine:
        yield engine


@asynccontextmanager
async def engine_alone(section: EngineSection) -> AsyncIterator[int]:
    """Open a section's engine; yield its number of workers, 0 for this process. Raise as `engine_open`."""
    if section.kind == "local":
        yield 0
        return
    async with _in_place(section) as engine:
        yield engine.room


@asynccontextmanager
async def _in_place(section: EngineSection) -> AsyncIterator[RayEngine]:
    engine = RayEngine(section)
    engine.open()
    before = engine_in_place.set(engine)
    try:
        yield engine
    finally:
        engine_in_place.reset(before)
        await engine.aclose()


@asynccontextmanager
async def watching(engine: WorkEngine, journal: Journal, address: str) -> AsyncIterator[None]:
    """Record the engine's state and `address` in the journal every few seconds, and as ended when the block ends."""
    looks: deque[tuple[float, int]] = deque(maxlen=WINDOW)

    async def keep(*, ended: bool) -> None:
        looks.append((time.monotonic(), engine.state.done))
        (since, before), (now, done) = looks[0], looks[-1]
        rate = (done - before) / (now - since) if now > since else 0.0
        state = {**asdict(engine.state), "address": address}
        record = {**state, "per_s": round(rate, 3), "at": time.time(), "ended": ended}
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
    """Return the engine's last recorded state: fields of `EngineState`, address, pieces of work per second, time, and
    if the run has ended. None if the run used only this machine's processes.
    """
    stored = reader.meta(STATE)
    return None if stored is None else dict(orjson.loads(stored))


def joined(metas: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge the engine records of several runs, by meta key: the latest state, with all addresses."""
    states: list[dict[str, object]] = [orjson.loads(meta[STATE]) for meta in metas if STATE in meta]
    if not states:
        return {}
    last = max(states, key=lambda state: float(str(state.get("at", 0.0))))
    addresses = dict.fromkeys(str(state["address"]) for state in states if "address" in state)
    return {STATE: orjson.dumps({**last, "address": ", ".join(addresses), "ended": True}).decode()}


def state_in_words(state: EngineState) -> str:
    """Format an engine's state for the progress line, e.g. "ray: 4 workers, 3 busy, 10 queued"."""
    lost = f", {state.lost} lost" if state.lost else ""
    room = f", no room in the cluster for a worker of {state.no_room_for}" if state.no_room_for else ""
    return f"{state.kind}: {counted(state.workers, 'worker')}, {state.busy} busy, {state.queued} queued{lost}{room}"
