"""The gate before hosted models: a lane for each, one purse and one count of calls for all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from plantain.calls.admission import Ticket
from plantain.calls.lane import Lane, LaneRules, LaneTicket
from plantain.calls.money import Purse
from plantain.calls.stops import Interrupted, LimitReached
from plantain.journal import JsonValue
from plantain.records import Step


class Gate:
    """Admission by stated and learned limits, within a budget and a number of calls.

    Args:
        rules: what the recipe says of a model, by its name; asked once for each.
        purse: the run's money and calls.
    """

    def __init__(self, rules: Callable[[str], LaneRules], purse: Purse) -> None:
        self.purse = purse
        self.lanes: dict[str, Lane] = {}
        self._rules = rules
        self._short_of_money: set[Lane] = set()
        self._stopped: Exception | None = None

    @asynccontextmanager
    async def admit(self, model: str, step: Step) -> AsyncIterator[Ticket]:
        """Waits for leave to send one call to `model`.

        Raises:
            LimitReached: the budget or the cap on calls is used up.
            Interrupted: the run was asked to stop meanwhile.
        """
        if self._stopped is not None:
            raise _again(self._stopped)
        lane = self._lane(model)
        place = lane.queue(step)
        self._pump(lane)
        try:
            ticket = await place
        except BaseException:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._hand_in(place.result())  # granted and cancelled in the same instant
            raise
        try:
            yield ticket
        finally:
            self._hand_in(ticket)

    @asynccontextmanager
    async def resume(self, model: str, step: Step, reserved_usd: float | None) -> AsyncIterator[Ticket]:
        """Takes over a call that an earlier process sent: it is counted and paid for already, so nothing is asked."""
        ticket = self._lane(model).resume(step, reserved_usd)
        try:
            yield ticket
        finally:
            self._hand_in(ticket)

    def stop(self) -> None:
        """Nobody is granted a ticket any more; whoever waits gets Interrupted."""
        self._end(Interrupted())

    @property
    def in_jobs(self) -> int:
        """Calls that wait for batch jobs."""
        return sum(lane.window.in_flight for lane in self.lanes.values() if lane.rules.in_jobs)

    def told(self) -> dict[str, JsonValue]:
        """How the limits moved, by model, for the session's telemetry."""
        return {model: lane.history.as_json() for model, lane in sorted(self.lanes.items())}

    def _lane(self, model: str) -> Lane:
        if model not in self.lanes:
            self.lanes[model] = Lane(model, self._rules(model), self.purse, self._pump)
        return self.lanes[model]

    def _hand_in(self, ticket: LaneTicket) -> None:
        ticket.hand_in()
        self._pump(ticket.lane)
        for lane in list(self._short_of_money):
            self._pump(lane)

    def _pump(self, lane: Lane) -> None:
        self._short_of_money.discard(lane)
        try:
            if lane.pump():
                self._short_of_money.add(lane)
        except LimitReached as reached:
            self._end(reached)

    def _end(self, why: Exception) -> None:
        if self._stopped is None:
            self._stopped = why
        for lane in self.lanes.values():
            lane.fail(self._stopped)


def _again(why: Exception) -> Exception:
    """The same error anew: one object raised in many tasks would gather all their tracebacks."""
    return type(why)(*why.args)
