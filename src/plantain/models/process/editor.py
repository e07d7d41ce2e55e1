"""The editor of the provider `process`: gathers requests into manifests and reads what the program made of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from plantain.engines.contract import remote_engine
from plantain.findings import sides_to_name
from plantain.models.diffusers.weights import folder_digest
from plantain.models.frames import FramePolicy
from plantain.models.presets import Preset
from plantain.models.process.batch import run_batch
from plantain.models.process.exchange import ProcessRequest
from plantain.models.process.program import Program
from plantain.models.process.remote import edit_here
from plantain.models.remote import on_worker, wants_normal_form
from plantain.pixels.decode import declared_size
from plantain.records import InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed
from plantain.roles.exchange import NO_REGION
from plantain.roles.options import SIDES_TOLD, WorkerCommand

VERSION = "1"
GATHER_S = 0.03
"""How long a program that could take more edits waits for others that are about to arrive."""

NO_EXAMPLES = Outcome(OutcomeKind.NOT_APPLICABLE, "this editor looks at no demonstrations")


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    wish: ProcessRequest
    answer: asyncio.Future[bytes | Outcome]


class ProcessEditor:
    """Another program as an editor.

    Args:
        name: "process/NAME".
        preset: whose words, canvas and settings it has; an empty one where there is none.
        command: how the program is started.
        tells_sides: say where the patient's sides lie in the picture, where an instruction names one.
    """

    def __init__(
        self,
        name: str,
        preset: Preset,
        command: WorkerCommand,
        side: int | None,
        *,
        tells_sides: bool = True,
    ) -> None:
        self.name = name
        self._tells_sides = tells_sides
        self.settings: dict[str, str | int | float | bool] = {**preset.settings, **command.settings}
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
        self._waiting: list[_Waiting] = []
        self._serving: asyncio.Task[None] | None = None
        self.fingerprint = (
            f"process@{VERSION} {self._served} {sorted(self.settings.items())} {self._policy} side={side} "
            f"prompt={preset.prompt}{SIDES_TOLD * tells_sides}"
        )

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """The edited picture at the original's own size, or why there is none.

        Raises:
            InputError: a parameter that is none of the model's settings.
        """
        unknown = set(request.parameters) - self.adjustable
        if unknown:
            raise InputError(f"{self.name}: no parameter {', '.join(sorted(unknown))} among its settings")
        if request.demonstrations:
            return failed(NO_EXAMPLES)
        if self.takes_region and request.region is None:
            return failed(NO_REGION)
        width, height = declared_size(request.original.data)
        if not (width and height):
            return failed(Outcome(OutcomeKind.MALFORMED, "the original is no picture that we read"))
        frame = self._policy.frame(width, height, self._side)
        wish = ProcessRequest(
            request.original.data,
            frame,
            self._preset.words(
                request.instruction,
                sides_to_name(request.instruction, request.image) if self._tells_sides else "",
            ),
            request.seed,
            request.region.data if self.takes_region and request.region else None,
            request.parameters,
        )
        engine, normal = remote_engine(), None
        if engine is None:
            result = await self._ask(wish)
        else:
            made = await on_worker(
                engine,
                "editor",
                edit_here,
                self.name,
                self._command,
                self.settings,
                wish,
                wants_normal_form(request),
            )
            result, normal = (made, None) if isinstance(made, Outcome) else made
        record: Mapping[str, object] = {
            "instruction": wish.instruction,
            "seed": wish.seed,
            "settings": {**self.settings, **request.parameters},
            "geometry": frame.as_json(),
        }
        raw = orjson.dumps(record).decode()
        if isinstance(result, Outcome):
            return failed(result, Usage(), raw)
        note = f"{self.name} at {frame.canvas_width}x{frame.canvas_height} ({frame.mode})"
        usage = Usage(served_model=self._served, images=1)
        return Reply(
            EditedImage(EncodedImage(result, "image/png"), note=note, normal=normal), usage=usage, raw=raw
        )

    async def aclose(self) -> None:
        """Ends the program; the next edit starts it again."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
            self._serving = None
        await self._program.close()

    async def _ask(self, wish: ProcessRequest) -> bytes | Outcome:
        order = _Waiting(wish, asyncio.get_running_loop().create_future())
        self._waiting.append(order)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return await order.answer

    async def _serve(self) -> None:
        """Hands out what waits, as many together as the program takes, until nothing waits any more."""
        while self._waiting:
            if len(self._waiting) < self._command.batch_size:
                await asyncio.sleep(GATHER_S)
            together = self._waiting[: self._command.batch_size]
            del self._waiting[: len(together)]
            together = [order for order in together if not order.answer.cancelled()]
            if together:
                results = await self._batch([order.wish for order in together])
                for order, result in zip(together, results, strict=True):
                    if not order.answer.done():
                        order.answer.set_result(result)

    async def _batch(self, wishes: list[ProcessRequest]) -> list[bytes | Outcome]:
        return await run_batch(self._program, self.settings, wishes)


def _digest(command: WorkerCommand) -> str:
    """12 hex digits of the command line, and of the files that it names beside the program itself."""
    here = command.folder or Path()
    files = [here / word for word in command.command[1:] if (here / word).is_file()]
    parts = [*command.command, *(folder_digest(path) for path in files)]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]
