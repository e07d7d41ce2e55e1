"""The editor of the provider `diffusers`: a request to a device's process, and its result as a reply."""

from __future__ import annotations

import asyncio
import threading

import orjson

from plantain.engines.contract import WorkEngine, remote_engine
from plantain.findings import sides_to_name
from plantain.models.diffusers.devices import Devices, Order, device_names, release, share
from plantain.models.diffusers.jobs import Done, Job, Steering
from plantain.models.diffusers.plan import EditorPlan
from plantain.models.diffusers.remote import edit_here
from plantain.models.remote import on_worker, wants_normal_form
from plantain.pixels.decode import declared_size
from plantain.records import Direction, InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, NormalForm, Reply, failed
from plantain.roles.exchange import NO_REGION

VERSION = "1"
"""Of this adapter; raised when the same weights and request could be run otherwise."""

NO_EXAMPLES = Outcome(OutcomeKind.NOT_APPLICABLE, "open editors look at no demonstrations")


class DiffusersEditor:
    """Open weights as an editor; loads them with the first edit, gives their memory back when it is closed."""

    def __init__(self, plan: EditorPlan) -> None:
        self.plan = plan
        self.name = plan.name
        self.fingerprint = fingerprint_of(plan)
        self.adjustable = plan.method.takes
        self.takes_region = plan.method.region
        self._devices: Devices | None = None
        self._opening = threading.Lock()

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """The edited picture at the original's own size, or why there is none.

        Raises:
            InputError: a parameter that this method does not take.
        """
        if request.demonstrations:
            return failed(NO_EXAMPLES)
        if self.takes_region and request.region is None:
            return failed(NO_REGION)
        steering = self._steering(request)
        width, height = declared_size(request.original.data)
        if not (width and height):
            return failed(Outcome(OutcomeKind.MALFORMED, "the original is no picture that we read"))
        plan = self.plan
        side = plan.options.side
        job = Job(
            request.original.data,
            plan.preset.words(
                request.instruction,
                sides_to_name(request.instruction, request.image) if plan.tells_sides else "",
            ),
            request.seed,
            request.concept,
            None if request.direction in (None, Direction.CHANGE) else request.direction is Direction.REMOVE,
            side,
            request.region.data if self.takes_region and request.region else None,
        )
        canvas = plan.method.frame.frame(width, height, side).canvas
        order = Order(plan.loading, steering, canvas, job, plan.options.batch_size)
        engine = remote_engine()
        if engine is not None:
            return await self._on_worker(engine, order, normal=wants_normal_form(request))
        devices = self._devices
        if devices is None:
            devices = await asyncio.to_thread(self._open)
        return self._reply(await asyncio.wrap_future(devices.submit(order)))

    async def _on_worker(self, engine: WorkEngine, order: Order, *, normal: bool) -> Reply[EditedImage]:
        """The edit on a worker, which loads the weights from the same folder; one edit at a time."""
        device = self.plan.options.device
        done = await on_worker(
            engine, "editor", edit_here, order.loading, order.steering, order.job, device, normal
        )
        return failed(done) if isinstance(done, Outcome) else self._reply(*done)

    async def aclose(self) -> None:
        """Ends the processes of the devices when no other editor uses them; the next edit starts them again."""
        devices, self._devices = self._devices, None
        if devices is not None:
            await asyncio.to_thread(release, devices)

    def _open(self) -> Devices:
        with self._opening:
            if self._devices is None:
                self._devices = share(device_names(self.plan.options.device))
            return self._devices

    def _steering(self, request: EditRequest) -> Steering:
        unknown = set(request.parameters) - self.adjustable
        if unknown:
            raise InputError(
                f"{self.name}: no parameter {', '.join(sorted(unknown))}; it takes {', '.join(sorted(self.adjustable))}"
            )
        return Steering.of({**self.plan.steering.settings, **request.parameters})

    def _reply(self, done: Done, normal: NormalForm | None = None) -> Reply[EditedImage]:
        plan, record = self.plan, dict(done.record)
        record |= {
            "weights": f"{plan.weights.name}@{plan.weights.digest}",
            "licence": plan.terms.licence,
            **({"lora": f"{plan.lora.name}@{plan.lora.digest}"} if plan.lora else {}),
            **(
                {"loras": [f"{each.name}@{each.digest} x {weight:g}" for each, weight in plan.loras]}
                if plan.loras
                else {}
            ),
        }
        raw = orjson.dumps(record).decode()
        kind = str(record.get("device", "")).partition(":")[0]
        served = " ".join(
            filter(None, (f"{plan.name}@{plan.weights.digest}", str(record.get("precision", "")), kind))
        )
        if done.picture is None:
            return failed(done.outcome, Usage(), raw)
        usage = Usage(served_model=served, images=1)
        return Reply(
            EditedImage(EncodedImage(done.picture, "image/png"), note=_note(record), normal=normal),
            usage=usage,
            raw=raw,
        )


def fingerprint_of(plan: EditorPlan) -> str:
    """All that the answers of a plan's editor depend on, beside the request."""
    return f"diffusers@{VERSION} {plan.fingerprint}"


def _note(record: dict[str, object]) -> str:
    geometry = record["geometry"]
    assert isinstance(geometry, dict)
    return (
        f"{record['method']} at {geometry['canvas_width']}x{geometry['canvas_height']} ({geometry['mode']}), "
        f"{record['precision']}"
    )
