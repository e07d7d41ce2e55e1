"""The editor of the provider `process`: writes a manifest for another program."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

import orjson

from plantain.engines.contract import engine_in_place
from plantain.files.opening import read_inside
from plantain.models.frames import FramedRequest, FramePolicy, framed_request
from plantain.models.process.program import JOB, Program, Settings, command_digest, remark, run_job
from plantain.models.process.provider import WorkerCommand
from plantain.models.registry import Preset
from plantain.pixels.decode import BadImage, decode_output
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, NormalForm, Reply, failed, on_worker

VERSION = "1"


class ProcessEditor:
    """An editor that runs as another program.

    Args:
        name: "process/NAME".
        preset: the preset with prompt, canvas and settings; an empty one if there is none.
        command: how the program is started.
        side: side of the canvas in pixels, instead of the preset's.
    """

    def __init__(self, name: str, preset: Preset, command: WorkerCommand, side: int | None) -> None:
        self.name = name
        self.settings: Settings = {**preset.settings, **command.settings}
        self.adjustable = frozenset(
            name for name, value in self.settings.items() if type(value) in (int, float)
        )
        self.takes_region = preset.needs_region
        self._preset = preset
        self._policy = FramePolicy.of(preset.frame)
        self._command = command
        self._side = side
        self._program = Program(name, command)
        self._served = f"{name}@{command_digest(command)}"
        self.fingerprint = (
            f"process@{VERSION} {self._served} {sorted(self.settings.items())} {self._policy} side={side} "
            f"prompt={preset.prompt}"
        )

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return a PNG of the original's size, or a reply with the outcome that explains why there is none.

        Raises:
            InputError: a parameter is not among the model's settings.
        """
        unknown = set(request.parameters) - self.adjustable
        if unknown:
            raise InputError(f"{self.name}: no parameter {', '.join(sorted(unknown))} among its settings")
        framed = framed_request(
            request, self._preset, self._policy, self._side, names_sides=True, takes_region=self.takes_region
        )
        if isinstance(framed, Outcome):
            return failed(framed)
        engine, normal = engine_in_place.get(), None
        if engine is None:
            result = await run_job(self._program, self.settings, framed, _job, _read_result)
        else:
            in_build = request.direction is not None  # the worker then makes the normal form, too
            arguments = self.name, self._command, self.settings, framed, in_build
            edited = await on_worker(engine, "editor", edit_here, *arguments)
            result, normal = (edited, None) if isinstance(edited, Outcome) else edited
        record = {
            "instruction": framed.instruction,
            "seed": framed.seed,
            "settings": {**self.settings, **request.parameters},
            "geometry": framed.frame.as_json(),
        }
        raw = orjson.dumps(record).decode()
        if isinstance(result, Outcome):
            return failed(result, Usage(), raw)
        width, height = framed.frame.canvas
        note = f"{self.name} at {width}x{height} ({framed.frame.mode})"
        image = EditedImage(EncodedImage(result, "image/png"), note=note, normal=normal)
        return Reply(image, usage=Usage(served_model=self._served, images=1), raw=raw)

    async def aclose(self) -> None:
        """End the program; the next edit starts it again."""
        await self._program.close()


def edit_here(
    name: str, command: WorkerCommand, settings: Settings, framed: FramedRequest, normal: bool
) -> tuple[bytes | Outcome, NormalForm | None]:
    """Make one edit with a program on this worker; return (PNG bytes or an outcome, normal form or None).

    Args:
        name: name of the editor; a worker serves one run, in which it has one command.
        command: how the program is started on this machine, once, at its first edit.
        settings: settings of every edit.
        framed: the edit request.
        normal: True to compute the normal form as well.
    """
    program = _programs.setdefault(name, Program(name, command))
    result = _loop().run_until_complete(run_job(program, settings, framed, _job, _read_result))
    return result, NormalForm.of(result) if normal and isinstance(result, bytes) else None


_programs: dict[str, Program] = {}


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop for the worker's life: the program's pipes belong to it."""
    return asyncio.new_event_loop()


def _job(folder: Path, request: FramedRequest) -> dict[str, object]:
    image, mask = folder / "in" / f"{JOB}.png", folder / "in" / f"{JOB}-region.png"
    image.write_bytes(encode_png(request.canvas()))
    region = request.canvas_region()
    if region is not None:
        mask.write_bytes(encode_mask(region))
    return {
        "image": str(image),
        "region": None if region is None else str(mask),
        "instruction": request.instruction,
        "seed": request.seed,
        "parameters": dict(request.parameters),
        "width": request.frame.canvas_width,
        "height": request.frame.canvas_height,
    }


def _read_result(folder: Path, request: FramedRequest) -> bytes | Outcome:
    """Return the program's output for one edit."""
    path = folder / "out" / f"{JOB}.png"
    outcome = remark(folder / "out" / f"{JOB}.json")
    if outcome is not None:
        return outcome
    if not path.is_file():
        return Outcome(OutcomeKind.NO_IMAGE, f"the program wrote no {path.name}")
    try:
        return request.leave(decode_output(read_inside(folder, path), f"output {path.name}"))
    except BadImage as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))
