"""The editor of the provider `diffusers`: an edit request becomes a job for a device, and its result a reply."""

from __future__ import annotations

import asyncio
import threading

import orjson

from plantain.engines.contract import engine_in_place
from plantain.models.diffusers.devices import Devices, device_names, release, share
from plantain.models.diffusers.jobs import Steering
from plantain.models.diffusers.plan import EditorPlan
from plantain.models.diffusers.remote import Edited, edit_here, job_of
from plantain.models.frames import FramedRequest, framed_request
from plantain.pixels.decode import BadImage
from plantain.records import InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed, on_worker


class DiffusersEditor:
    """An editor that runs open weights on this machine; they are loaded with the first edit and freed on closing."""

    def __init__(self, plan: EditorPlan) -> None:
        self.plan = plan
        self.name = plan.name
        self.fingerprint = plan.fingerprint
        self.adjustable = plan.method.takes
        self.takes_region = plan.method.region
        self._devices: Devices | None = None
        self._opening = threading.Lock()

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return a PNG of the original's size, or a reply with the outcome that explains why there is none.

        Raises:
            InputError: the editing method does not support a parameter of the request.
        """
        plan = self.plan
        steering = self._steering(request)
        framed = framed_request(
            request,
            plan.preset,
            plan.method.frame,
            plan.options.side,
            names_sides=plan.names_sides,
            takes_region=self.takes_region,
        )
        if isinstance(framed, Outcome):
            return failed(framed)
        engine = engine_in_place.get()
        if engine is None:
            return self._reply(framed, await self._edit_locally(framed, steering))
        in_build = request.direction is not None  # the worker then makes the normal form, too
        arguments = plan.loading, steering, framed, plan.options.device, in_build
        edited = await on_worker(engine, "editor", edit_here, *arguments)
        return failed(edited) if isinstance(edited, Outcome) else self._reply(framed, edited)

    async def _edit_locally(self, framed: FramedRequest, steering: Steering) -> Edited:
        devices = self._devices
        if devices is None:
            devices = await asyncio.to_thread(self._open)
        try:
            job = await asyncio.to_thread(job_of, self.plan.loading, steering, framed)
        except BadImage as error:
            return Edited(Outcome(OutcomeKind.MALFORMED, str(error)), {})
        done = await asyncio.wrap_future(devices.submit(job))
        if done.pixels is None:
            return Edited(done.outcome, done.record)
        return Edited(await asyncio.to_thread(framed.leave, done.pixels), done.record)

    async def aclose(self) -> None:
        """End the devices' processes if no other editor uses them; the next edit starts them again."""
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

    def _reply(self, framed: FramedRequest, edited: Edited) -> Reply[EditedImage]:
        plan, frame = self.plan, framed.frame
        record = {
            **edited.record,
            "geometry": frame.as_json(),
            "weights": f"{plan.weights.name}@{plan.weights.digest}",
            "licence": plan.terms.licence,
        }
        if plan.lora:
            record["lora"] = f"{plan.lora.name}@{plan.lora.digest}"
        raw = orjson.dumps(record).decode()
        if isinstance(edited.result, Outcome):
            return failed(edited.result, Usage(), raw)
        precision, device = str(record["precision"]), str(record["device"]).partition(":")[0]
        note = f"{record['method']} at {frame.canvas_width}x{frame.canvas_height} ({frame.mode}), {precision}"
        image = EditedImage(EncodedImage(edited.result, "image/png"), note=note, normal=edited.normal)
        served = f"{plan.name}@{plan.weights.digest} {precision} {device}"
        return Reply(image, usage=Usage(served_model=served, images=1), raw=raw)
