"""A server of one's own that queues: it works on so many requests at once, and on those that were given up as well."""

from __future__ import annotations

import asyncio


class QueueingServer:
    """Answers requests in the order in which they came.

    Args:
        workers: requests that it works on at once.
        seconds: how long one takes.
    """

    def __init__(self, workers: int, seconds: float) -> None:
        self._free = asyncio.Semaphore(workers)
        self._seconds = seconds
        self.started: list[float] = []
        self.answered = 0
        self._work: set[asyncio.Task[None]] = set()

    @property
    def asked(self) -> int:
        return len(self.started)

    async def ask(self) -> None:
        """One request. A cancelled request was given up by its client: the server does not learn of that."""
        self.started.append(asyncio.get_running_loop().time())
        work = asyncio.create_task(self._answer())
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        await asyncio.shield(work)
        self.answered += 1

    async def _answer(self) -> None:
        async with self._free:
            await asyncio.sleep(self._seconds)
