"""The engine of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from plantain.engines.cluster import RayEngine
from plantain.engines.contract import engine_in_place
from plantain.journal import Journal
from plantain.runs.progress import ProgressObserver
from plantain.runs.terms import Terms

CLUSTERS = "engine.clusters"
"""Key of the run's meta: addresses of the Ray clusters that computed for it, separated by ", "."""


def joined_clusters(*recorded: str | None) -> str:
    """Merge lists of addresses of clusters, each address once; None and "" are empty lists."""
    return ", ".join(dict.fromkeys(address for text in recorded if text for address in text.split(", ")))


@asynccontextmanager
async def engine_open(terms: Terms, journal: Journal, observer: ProgressObserver) -> AsyncIterator[Terms]:
    """Open the terms' cluster until the block ends, and record its address; yield terms with its number of places.

    Raises:
        InputError: the cluster does not answer, or Ray is not installed.
    """
    engine = RayEngine(terms.engine)
    engine.open()
    before = engine_in_place.set(engine)
    try:
        observer.engine(lambda: engine.line)
        known = journal.reader.meta(CLUSTERS)
        if (clusters := joined_clusters(known, terms.engine.address)) != known:
            await journal.set_meta(CLUSTERS, clusters)
        yield replace(terms, room=engine.room)
    finally:
        engine_in_place.reset(before)
        await engine.aclose()
