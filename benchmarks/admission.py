"""Use of a provider's limit and refused requests: plantain's admission compared with a semaphore.

The peer is what scripts do: a semaphore of the same width, and exponential backoff with full jitter after a 429.

* In simulated time, ten minutes each: providers that enforce 600 requests a minute as a token bucket, a sliding or a
  fixed window, or calls in flight; limits stated by the recipe, announced with each answer, or stated nowhere;
  the latter two halved, then doubled.
* In real time over loopback sockets, six minutes: 3,000 a minute, halved after two minutes, doubled after four. Ours
  with the limit in the recipe (which stays as it is), ours without, and the peer, all at once against servers of
  their own. The second minute of each level is steady; the first one is the cost of a change.

Targets: at least 95 % used with under 1 % refused, of every whole minute where the recipe states the limit, and as a
mean after the first minute where answers announce it, which is used to 90 % again within a minute of a change.
An unstated limit is followed by the calls in flight alone; its figures have no target.

Run: python benchmarks/admission.py [--no-loopback] [--kinds bucket sliding fixed] [--longest 900]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from plantain.calls import AdmissionController, Budget, ModelLimits
from plantain.records import OK, Outcome, OutcomeKind, Step, Usage
from simulated.clock import run_simulated
from simulated.limits import LimitedProvider

WIDTH = 64
LATENCY_S = 0.2
KINDS = ("bucket", "sliding", "fixed")
Ask = Callable[[], Awaitable[Outcome]]
Client = Callable[[Ask, float], Coroutine[Any, Any, None]]


def ours(requests_per_minute: float | None, announced: LimitedProvider | None = None) -> Client:
    """plantain's admission; the limit is stated by the recipe, announced by each answer, or neither."""

    async def client(ask: Ask, until: float) -> None:
        gate = AdmissionController(
            lambda model: ModelLimits(WIDTH, requests_per_minute=requests_per_minute), Budget(None)
        )
        rng = random.Random(0)
        loop = asyncio.get_running_loop()

        async def worker() -> None:
            tries = 0
            while loop.time() < until:
                async with gate.admit("hosted/model", Step.EDIT) as ticket:
                    ticket.started = True
                    outcome = await ask()
                    ticket.announced(announced.stated(loop.time()) if announced else [])
                    ticket.settle(outcome, Usage())
                tries = 0 if outcome.ok else tries + 1
                if not outcome.ok:
                    await asyncio.sleep(
                        (outcome.retry_after or 0.0) + rng.uniform(0.0, min(60.0, 2.0**tries))
                    )

        await _for(until, worker)

    return client


async def semaphore(ask: Ask, until: float) -> None:
    """The peer."""
    slots = asyncio.Semaphore(WIDTH)
    rng = random.Random(0)
    loop = asyncio.get_running_loop()

    async def worker() -> None:
        tries = 0
        while loop.time() < until:
            async with slots:
                outcome = await ask()
            tries = 0 if outcome.ok else tries + 1
            if not outcome.ok:
                await asyncio.sleep(rng.uniform(0.0, min(60.0, 2.0**tries)))

    await _for(until, worker)


async def _for(until: float, worker: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    tasks = [asyncio.ensure_future(worker()) for _ in range(WIDTH)]
    await asyncio.wait(tasks, timeout=max(0.0, until - loop.time()))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def simulate(client: Client, provider: LimitedProvider, seconds: float, latency_s: float = LATENCY_S) -> None:
    rng = random.Random(1)

    async def ask() -> Outcome:
        outcome = provider.ask(asyncio.get_running_loop().time())
        if outcome.ok:
            await asyncio.sleep(latency_s * rng.uniform(0.5, 1.5))
            provider.leave()
        else:
            await asyncio.sleep(0.02)
        return outcome

    run_simulated(client(ask, seconds))


@dataclass(frozen=True)
class Shares:
    """Utilisation of whole minutes and refused share, from one second to another."""

    least: float
    mean: float
    refused: float

    def __str__(self) -> str:
        return (
            f"used {100 * self.mean:5.1f} % (worst minute {100 * self.least:5.1f} %), "
            f"refused {100 * self.refused:5.2f} %"
        )


def shares(provider: LimitedProvider, begin: int, end: int) -> Shares:
    minutes = [provider.utilisation(at, at + 60) for at in range(begin, end, 60)]
    return Shares(min(minutes), sum(minutes) / len(minutes), provider.refused_share(begin, end))


def recovery(provider: LimitedProvider, changed_at: int) -> int:
    """Seconds after a change until ten seconds in a row were used to 90 %."""
    for after in range(120):
        if provider.utilisation(changed_at + after, changed_at + after + 10) >= 0.90:
            return after + 10
    return 999


def simulated(kinds: Sequence[str], longest_s: float) -> bool:
    good = True
    print(
        "simulated, the limit is stated (600 a minute), ten minutes; target 95 % of every minute, under 1 % refused"
    )
    for kind in kinds:
        for name, client in (("plantain", ours(600.0)), ("semaphore", semaphore)):
            provider = LimitedProvider(kind, [(0.0, 600.0)])
            simulate(client, provider, min(600.0, longest_s))
            seen = shares(provider, 0, 600)
            print(f"  {kind:<8} {name:<10} {seen}", flush=True)
            good &= name != "plantain" or (seen.least >= 0.95 and seen.refused < 0.01)
    print(
        "simulated, the limit is stated nowhere; halved after four minutes, doubled after eight; from the second minute"
    )
    steps = [(0.0, 600.0), (240.0, 300.0), (480.0, 600.0)]
    for kind, hint in itertools.product(kinds, (True, False)):
        for name, client in (("plantain", ours(None)), ("semaphore", semaphore)):
            provider = LimitedProvider(kind, steps, hint=hint)
            simulate(client, provider, min(720.0, longest_s))
            seen = shares(provider, 60, 240)
            down, up = recovery(provider, 240), recovery(provider, 480)
            refusal = "with a retry time" if hint else "without one"
            print(
                f"  {kind:<8} {refusal:<24} {name:<10} {seen}; at 90 % {down} s after halving, {up} s after doubling",
                flush=True,
            )
    print(
        "simulated, the limit is announced with every answer, and a refusal has no retry time; the same steps"
    )
    for kind in kinds:
        provider = LimitedProvider(kind, steps, hint=False)
        simulate(ours(None, provider), provider, min(720.0, longest_s))
        seen, whole = shares(provider, 60, 240), shares(provider, 0, 720)
        down, up = recovery(provider, 240), recovery(provider, 480)
        print(
            f"  {kind:<8} plantain   {seen}; at 90 % {down} s after halving, {up} s after doubling; all: {whole}"
        )
        good &= seen.mean >= 0.95 and seen.refused < 0.01 and max(down, up) <= 60
    print("simulated, no rate but 10 calls in flight (of 0.2 s: 3,000 a minute), from the second minute")
    for name, client in (("plantain", ours(None)), ("semaphore", semaphore)):
        provider = LimitedProvider("parallel", [(0.0, 10.0)])
        simulate(client, provider, min(300.0, longest_s))
        used = sum(60 <= at < 300 for at in provider.taken) / (4 * 3_000)
        print(f"  {name:<10} used {100 * used:5.1f} %, refused {100 * provider.refused_share(60, 300):.2f} %")
    print(
        "simulated, a bucket of one request a second without announcements, answers of 15 s, from the sixth minute"
    )
    for name, client in (("plantain", ours(None)), ("semaphore", semaphore)):
        provider = LimitedProvider("bucket", [(0.0, 60.0)], hint=False)
        simulate(client, provider, min(900.0, longest_s), latency_s=15.0)
        print(f"  {name:<10} {shares(provider, 300, 900)}")
    return good


# --- loopback ---------------------------------------------------------------------------------------


class Loopback:
    """A provider on a socket of this machine, and a client that keeps its connections."""

    def __init__(self, provider: LimitedProvider) -> None:
        self.provider = provider
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._links: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._port = 0
        self._started = 0.0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        self._started = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Hangs up, so that the serving side ends by itself."""
        for _, writer in self._links:
            writer.close()
        self._server.close()
        await asyncio.sleep(2 * LATENCY_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # the client was cancelled in the middle of an answer
            while await reader.readline():
                outcome = self.provider.ask(asyncio.get_running_loop().time() - self._started)
                if outcome.ok:
                    await asyncio.sleep(LATENCY_S)
                    self.provider.leave()
                    writer.write(b"200\n")
                else:
                    writer.write(f"429 {outcome.retry_after or 0.0}\n".encode())
        writer.close()

    async def ask(self) -> Outcome:
        if self._idle:
            link = self._idle.pop()
        else:
            link = await asyncio.open_connection("127.0.0.1", self._port)
            self._links.append(link)
        link[1].write(b"POST\n")
        status, _, wait = (await link[0].readline()).decode().strip().partition(" ")
        self._idle.append(link)
        if status == "200":
            return OK
        return Outcome(OutcomeKind.RATE_LIMITED, "429", retry_after=float(wait) or None)


def steady(provider: LimitedProvider) -> Shares:
    """The second minutes of the three levels."""
    minutes = [shares(provider, begin, begin + 60) for begin in (60, 180, 300)]
    used = [minute.mean for minute in minutes]
    return Shares(min(used), sum(used) / 3, sum(minute.refused for minute in minutes) / 3)


async def loopback() -> bool:
    steps = [(0.0, 3_000.0), (120.0, 1_500.0), (240.0, 3_000.0)]
    entrants: dict[str, tuple[Client, LimitedProvider]] = {
        "plantain, 3,000 stated": (ours(3_000.0), LimitedProvider("bucket", [(0.0, 3_000.0)])),
        "plantain, not stated": (ours(None), LimitedProvider("bucket", steps)),
        "semaphore": (semaphore, LimitedProvider("bucket", steps)),
    }
    print(
        "loopback, six minutes, 3,000 a minute; for the lower two halved after two minutes, doubled after four; "
        "target where it is stated: 95 % of every minute, under 1 % refused"
    )
    until = asyncio.get_running_loop().time() + 360.0
    runs, links = [], []
    for client, provider in entrants.values():
        link = Loopback(provider)
        await link.open()
        links.append(link)
        runs.append(client(link.ask, until))
    await asyncio.gather(*runs)
    for link in links:
        await link.close()
    good = True
    for name, (_, provider) in entrants.items():
        if "3,000 stated" in name:
            seen = shares(provider, 0, 360)
            good &= seen.least >= 0.95 and seen.refused < 0.01
            print(f"  {name:<22} {seen}")
            continue
        seen, whole = steady(provider), shares(provider, 0, 360)
        down, up = recovery(provider, 120), recovery(provider, 240)
        print(
            f"  {name:<22} steady: {seen}; at 90 % again {down} s after halving, {up} s after doubling; "
            f"all six minutes: {whole}"
        )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-loopback", action="store_true", help="simulated time only")
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=KINDS, help="the units that the provider counts"
    )
    parser.add_argument("--longest", type=float, default=900.0, help="most seconds of a simulation")
    args = parser.parse_args()
    good = simulated(args.kinds, args.longest)
    if not args.no_loopback:
        good &= asyncio.run(loopback())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
