"""Edits by another program on an engine's worker, which starts the program once and keeps it while it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache

from plantain.models.process.batch import run_batch
from plantain.models.process.exchange import ProcessRequest
from plantain.models.process.program import Program
from plantain.models.remote import normal_form
from plantain.records import Outcome
from plantain.roles import NormalForm
from plantain.roles.options import WorkerCommand

_programs: dict[str, Program] = {}


def edit_here(
    name: str,
    command: WorkerCommand,
    settings: Mapping[str, str | int | float | bool],
    wish: ProcessRequest,
    normal: bool,
) -> tuple[bytes | Outcome, NormalForm | None]:
    """Has one edit made by this worker's program.

    Args:
        name: of the editor; a worker serves one run, in which it stands for one command.
        command: how the program is started on this machine.
        settings: of every edit.
        wish: the edit.
        normal: bring what comes out into normal form too.
    """
    program = _programs.setdefault(name, Program(name, command))
    (result,) = _loop().run_until_complete(run_batch(program, settings, [wish]))
    return result, normal_form(result) if normal and isinstance(result, bytes) else None


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop for the worker's life: the program's pipes belong to it."""
    return asyncio.new_event_loop()
