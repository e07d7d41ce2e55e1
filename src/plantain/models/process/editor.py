"""The editor of the provider `process`: gathers requests into manifests for another program."""

from __future__ import annotations

import asyncio
import hashlib
from functools import cache
from pathlib import Path

import orjson

from plantain.engines.contract import remote_engine
from plantain.models.diffusers.weights import folder_digest
from plantain.models.frames import FramedRequest, FramePolicy, framed_request
from plantain.models.presets import Preset
from plantain.models.process.program import Program, Settings, run_batch
from plantain.models.process.provider import WorkerCommand
from plantain.models.remote import normal_form, on_worker, wants_normal_form
from plantain.records import InputError, Outcome, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, NormalForm, Reply, failed

VERSION = "1"
GATHER_S = 0.03
"""How long a program that could take more edits waits for others that are about to arrive."""


class ProcessEditor:
    """Another program as an editor.

    Args:
        name: "process/NAME".
        preset: with prompt, canvas and settings; an empty one if there is none.
        command: how the program is started.
        side: of the canvas, instead of the preset's.
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
        self._served = f"{name}@{_digest(command)}"
        self._waiting: list[tuple[FramedRequest, asyncio.Future[bytes | Outcome]]] = []
        self._serving: asyncio.Task[None] | None = None
        self.fingerprint = (
            f"process@{VERSION} {self._served} {sorted(self.settings.items())} {self._policy} side={side} "
            f"prompt={preset.prompt}"
        )

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return the edited image at the original's own size, or why there is none.

        Raises:
            InputError: a parameter that is none of the model's settings.
        """
        unknown = set(request.parameters) - self.adjustable
        if unknown:
            raise InputError(f"{self.name}: no parameter {', '.join(sorted(unknown))} among its settings")
        framed = framed_request(
            request, self._preset, self._policy, self._side, names_sides=True, takes_region=self.takes_region
        )
        if isinstance(framed, Outcome):
            return failed(framed)
        engine, normal = remote_engine(), None
        if engine is None:
            result = await self._ask(framed)
        else:
            arguments = self.name, self._command, self.settings, framed, wants_normal_form(request)
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
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
            self._serving = None
        await self._program.close()

    async def _ask(self, framed: FramedRequest) -> bytes | Outcome:
        answer: asyncio.Future[bytes | Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((framed, answer))
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return await answer

    async def _serve(self) -> None:
        """Serve waiting requests, as many together as the program takes, until none is left."""
        while self._waiting:
            if len(self._waiting) < self._command.batch_size:
                await asyncio.sleep(GATHER_S)
            together = self._waiting[: self._command.batch_size]
            del self._waiting[: len(together)]
            together = [(framed, answer) for framed, answer in together if not answer.cancelled()]
            if together:
                results = await run_batch(self._program, self.settings, [framed for framed, _ in together])
                for (_, answer), result in zip(together, results, strict=True):
                    if not answer.done():
                        answer.set_result(result)


def edit_here(
    name: str, command: WorkerCommand, settings: Settings, framed: FramedRequest, normal: bool
) -> tuple[bytes | Outcome, NormalForm | None]:
    """Make one edit with this engine worker's own program, which is started once and kept.

    Args:
        name: of the editor; a worker serves one run, in which it has one command.
        command: how the program is started on this machine.
        settings: of every edit.
        framed: the edit.
        normal: return the normal form, too.
    """
    program = _programs.setdefault(name, Program(name, command))
    (result,) = _loop().run_until_complete(run_batch(program, settings, [framed]))
    return result, normal_form(result) if normal and isinstance(result, bytes) else None


_programs: dict[str, Program] = {}


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop for the worker's life: the program's pipes belong to it."""
    return asyncio.new_event_loop()


def _digest(command: WorkerCommand) -> str:
    """12 hex digits of the command line, and of the files that it names in addition to the program itself."""
    here = command.folder or Path()
    files = [here / word for word in command.command[1:] if (here / word).is_file()]
    parts = [*command.command, *(folder_digest(path) for path in files)]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]
