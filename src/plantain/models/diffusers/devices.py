"""The queue of the devices: requests that wait together go out as batches, to whichever device is free."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from plantain.models.diffusers.device_process import DeviceProcess
from plantain.models.diffusers.jobs import Batch, Done, Job, Loading, Steering
from plantain.records import InputError, Outcome, OutcomeKind

GATHER_S = 0.03
"""How long a device that could take more edits waits for others that are about to arrive."""

AHEAD = 2
"""Batches that a device has still to draw: that at which it works, and one whose pictures are read meanwhile."""

GIVEN_UP = Outcome(OutcomeKind.TRANSPORT, "the devices were given up before they came to it")

USUAL_BATCH = 4
"""Edits together on a GPU, unless told otherwise; on a processor a batch gains nothing."""


def usual_batch(device: str) -> int:
    """Edits together on a device, unless told otherwise: one on Apple's, where batches are not reliable (diffusers'
    own advice for "mps")."""
    return USUAL_BATCH if device.startswith("cuda") else 1


def calls_in_flight(devices: Iterable[str], batch_size: int | None) -> int:
    """Edits that keep devices busy: for each a batch that it draws, one that is read and one that is written."""
    return sum(3 * (batch_size or usual_batch(device)) for device in devices)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """One edit that waits for a device.

    Attributes:
        loading, steering: what runs it, and how.
        canvas: width and height at which it runs: only equal ones go together.
        job: the edit.
        most: how many may go together; None for the device's usual.
        answer: where the result goes.
    """

    loading: Loading
    steering: Steering
    canvas: tuple[int, int]
    job: Job
    most: int | None
    answer: Future[Done] = field(default_factory=Future)

    def goes_with(self, other: Order) -> bool:
        """Whether both can be in one batch."""
        mine = self.loading, self.steering, self.canvas, self.most
        return mine == (other.loading, other.steering, other.canvas, other.most)


class _Device:
    """A device as its threads see it: its process, and the batches that it has, oldest first.

    Attributes:
        process: that computes.
        sent: batches that are not answered yet.
        drawn: how many of `sent` have left the device and are being encoded.
        took_s: how long the last batch was on the device.
    """

    def __init__(self, name: str) -> None:
        self.process = DeviceProcess(name)
        self.sent: list[list[Order]] = []
        self.drawn = 0
        self.took_s = 0.0
        self.sending = threading.Lock()
        """Held while a batch is sent and noted in `sent`, and while a process that has died is buried."""

    @property
    def ahead(self) -> int:
        """Batches that the device has still to draw, that at which it works included."""
        return max(0, len(self.sent) - self.drawn)


class Devices:
    """Devices that serve one queue, each with a process and two threads: one that sends and one that receives.

    Args:
        names: of torch, e.g. ("cuda:0", "cuda:1").
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._waiting: list[Order] = []
        self._changed = threading.Condition()
        self._closed = False
        self._devices = [_Device(name) for name in self.names]
        self._threads = [
            threading.Thread(
                target=target, args=(device,), name=f"{name} {device.process.device}", daemon=True
            )
            for device in self._devices
            for name, target in (("to", self._send), ("from", self._receive))
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, order: Order) -> Future[Done]:
        """Puts an edit into the queue."""
        with self._changed:
            assert not self._closed, "submitted to devices that were given up"
            self._waiting.append(order)
            self._changed.notify_all()
        return order.answer

    def close(self) -> None:
        """Ends the processes once what they were sent is done; what still waits is cancelled."""
        with self._changed:
            self._closed = True
            for order in self._waiting:
                if not order.answer.cancel():  # it was sent to a process that has died
                    order.answer.set_result(Done(None, GIVEN_UP, {}))
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _send(self, device: _Device) -> None:
        """Keeps the device supplied: one batch that it draws, and one that is read meanwhile."""
        try:
            while (orders := self._next(device)) is not None:
                if not orders:
                    continue
                first = orders[0]
                with device.sending:
                    device.process.send(
                        Batch(first.loading, first.steering, tuple(order.job for order in orders))
                    )
                    with self._changed:
                        device.sent.append(orders)
                        self._changed.notify_all()
        finally:
            device.process.close()

    def _receive(self, device: _Device) -> None:
        """Hands results to those who wait for them."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: device.sent or self._closed)
                if not device.sent:
                    return
                idle = device.drawn == len(device.sent)
            begun = time.monotonic()
            try:
                message = device.process.receive()
            except (EOFError, OSError):
                self._bury(device)
                continue
            with self._changed:
                self._changed.notify_all()
                if message is None:
                    device.drawn += 1
                    device.took_s = 0.0 if idle else time.monotonic() - begun
                    continue
                orders = device.sent.pop(0)
                device.drawn -= 1
            for order, done in zip(orders, message, strict=True):
                order.answer.set_result(done)

    def _bury(self, device: _Device) -> None:
        """The process is gone: what it may have died of is lost, what it had not come to waits again, before others.

        Lost are the batch that it was drawing and the one whose results came next. All may be tried again.
        """
        with device.sending:
            outcome = device.process.bury()
            with self._changed:
                sent, drawn = device.sent, device.drawn
                device.sent, device.drawn = [], 0
                lost = {0, drawn} if not self._closed else set(range(len(sent)))
                self._waiting[:0] = [
                    order for place, orders in enumerate(sent) if place not in lost for order in orders
                ]
                self._changed.notify_all()
        for place in sorted(lost & set(range(len(sent)))):
            for order in sent[place]:
                order.answer.set_result(Done(None, outcome, {"device": device.process.device}))

    def _next(self, device: _Device) -> list[Order] | None:
        """The order that has waited longest and those that go with it; None when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or (self._waiting and self._has_turn(device)))
            if not self._closed:
                self._gather(device)
            if self._closed:
                self._changed.wait_for(lambda: not device.sent)
                return None
            if not (self._waiting and self._has_turn(device)):
                return []
            alike = self._alike()
            chosen = alike[: self._most(device)]
            self._waiting = [order for order in self._waiting if order not in chosen]
        return [
            order for order in chosen if order.answer.running() or order.answer.set_running_or_notify_cancel()
        ]

    def _has_turn(self, device: _Device) -> bool:
        """Whether it may take a batch: it has nothing to draw, or one batch only and no other device has nothing."""
        return not device.ahead or (device.ahead < AHEAD and all(other.ahead for other in self._devices))

    def _gather(self, device: _Device) -> None:
        """Waits for orders that are about to arrive and would go along: shortly, and longer while the device works."""
        patience = max(GATHER_S, device.took_s / 2) if device.ahead else GATHER_S
        worked = device.ahead > 0
        self._changed.wait_for(
            lambda: (
                self._closed
                or not self._waiting
                or len(self._alike()) >= self._most(device)
                or (worked and not device.ahead)
            ),
            patience,
        )

    def _alike(self) -> list[Order]:
        return [order for order in self._waiting if order.goes_with(self._waiting[0])]

    def _most(self, device: _Device) -> int:
        return self._waiting[0].most or usual_batch(device.process.device)


def device_names(named: str) -> tuple[str, ...]:
    """The devices of a setting: those named, or every GPU there is, or the processor.

    Raises:
        InputError: an empty name between commas.
    """
    if named:
        names = tuple(name.strip() for name in named.split(","))
        if not all(names):
            raise InputError(
                f'providers.diffusers.device: {named!r}; name devices like "cuda:0,cuda:1" or "cpu"'
            )
        return tuple("cuda:0" if name == "cuda" else name for name in names)
    import torch

    if torch.cuda.is_available():
        return tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
    return ("mps",) if torch.backends.mps.is_available() else ("cpu",)


_shared: dict[tuple[str, ...], tuple[Devices, int]] = {}
_lock = threading.Lock()


def share(names: tuple[str, ...]) -> Devices:
    """The devices of that name, one set for all editors of this process; each `share` ends with a `release`."""
    with _lock:
        devices, users = _shared.get(names) or (Devices(names), 0)
        _shared[names] = (devices, users + 1)
        return devices


def release(devices: Devices) -> None:
    """Gives a share back; the last one ends the processes, and with them what they held in memory."""
    with _lock:
        held, users = _shared[devices.names]
        assert held is devices
        if users > 1:
            _shared[devices.names] = (devices, users - 1)
            return
        del _shared[devices.names]
    devices.close()
