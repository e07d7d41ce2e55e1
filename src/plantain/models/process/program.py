"""Another program as an editor or a judge: started once, and killed if it hangs; data is exchanged by manifest."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import orjson

from plantain.files.opening import read_inside
from plantain.files.secrets import environment_without_keys, redacted
from plantain.models.diffusers.weights import folder_digest
from plantain.models.process.provider import WorkerCommand
from plantain.pixels.decode import BadImage, one_line
from plantain.records import OK, Outcome, OutcomeKind

LINE = 1 << 20
"""Most bytes of one line of output; a program that prints more is ended."""

LAST_MOMENTS_S = 2.0
"""A program that has closed its output has this long to end by itself."""


class Program:
    """A worker's process. It reads a manifest's path as a line, and writes the path back when it is done.

    Args:
        name: name of the editor, for messages.
        command: how the program is started.
    """

    def __init__(self, name: str, command: WorkerCommand) -> None:
        self.name = name
        self.command = command
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the program

    async def run(self, manifest: Path) -> Outcome | None:
        """Run one manifest, one after another; return None on success, else the outcome.

        A program that crashed or hung is ended; the next manifest starts it again.
        """
        try:
            async with self._turn, asyncio.timeout(self.command.timeout_s):
                process = await self._running()
                return await self._ask(process, manifest)
        except TimeoutError:
            await self._end(at_once=True)
            return Outcome(
                OutcomeKind.TRANSPORT,
                f"{self.name}: gave no answer within {self.command.timeout_s:g} s; it was ended",
            )
        except OSError as error:
            why = f"{self.name}: {self.command.command[0]!r} could not be started: {one_line(str(error))}"
            return Outcome(OutcomeKind.TRANSPORT, why, fatal=True)

    async def close(self) -> None:
        """End the program: close its input and wait 5 s, then kill it."""
        self._turn = asyncio.Lock()  # of the event loop of the next call
        await self._end()

    async def _end(self, *, at_once: bool = False) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        if not at_once:
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), 5.0)
            except TimeoutError:
                at_once = True
        if at_once and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it may have just ended
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            self._stderr.truncate(0)
            self._stderr.seek(0)
            safe_path = {"PYTHONSAFEPATH": "" if self.command.folder else "1"}
            self._process = await asyncio.create_subprocess_exec(
                *self.command.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=self._stderr,
                cwd=self.command.folder,
                env=environment_without_keys(self.command.environment) | safe_path,
                start_new_session=True,
                limit=LINE,
            )
        return self._process

    async def _ask(self, process: asyncio.subprocess.Process, manifest: Path) -> Outcome | None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{manifest}\n".encode())
            await process.stdin.drain()
            while line := await process.stdout.readline():
                if line.decode("utf-8", "replace").strip() == str(manifest):
                    return None
        except ValueError:
            await self._end(at_once=True)
            return Outcome(OutcomeKind.TRANSPORT, f"{self.name}: printed a megabyte without a line's end")
        except (BrokenPipeError, ConnectionResetError):
            pass
        return await self._crashed(process)

    async def _crashed(self, process: asyncio.subprocess.Process) -> Outcome:
        with contextlib.suppress(TimeoutError):  # one that has closed its output is about to say its status
            await asyncio.wait_for(process.wait(), LAST_MOMENTS_S)
        await self._end(at_once=True)
        code = process.returncode or 0
        self._stderr.seek(0)
        lines = redacted(self._stderr.read().decode("utf-8", "replace")).strip().splitlines()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code} before it was done"
        last = f": {one_line(lines[-1])}" if lines else ""
        return Outcome(OutcomeKind.TRANSPORT, f"{self.name}: the program {how}{last}")


CONTRACT = 1
"""Version of the manifest; a program refuses one that it does not know."""

JOB = "0"
"""Id of the only job of a manifest."""

REMARKS = {
    "refused": OutcomeKind.REFUSED,
    "not_applicable": OutcomeKind.NOT_APPLICABLE,
    "no_image": OutcomeKind.NO_IMAGE,
}
"""Outcomes that a program may write instead of a result."""

Settings = Mapping[str, str | int | float | bool]

R = TypeVar("R")
T = TypeVar("T")


async def run_job(
    program: Program,
    settings: Settings,
    request: R,
    job: Callable[[Path, R], dict[str, object]],
    read: Callable[[Path, R], T | Outcome],
) -> T | Outcome:
    """Run one request by a program; return its result, or an outcome with the reason.

    Args:
        program: the program, started if it is not running.
        settings: settings for the manifest.
        request: the request.
        job: writes the request's files into a folder, and returns its entry in the manifest; may raise BadImage.
        read: reads the result from the folder.
    """
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="plantain-"))
    try:
        manifest = await asyncio.to_thread(_write_manifest, folder, program.name, settings, request, job)
        fault = await program.run(manifest)
        return await asyncio.to_thread(read, folder, request) if fault is None else fault
    except BadImage as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _write_manifest(
    folder: Path, name: str, settings: Settings, request: R, job: Callable[[Path, R], dict[str, object]]
) -> Path:
    """Write images and the manifest of a request; return the manifest's path."""
    (folder / "in").mkdir()
    (folder / "out").mkdir()
    document = {
        "contract": CONTRACT,
        "model": name,
        "settings": dict(settings),
        "out": str(folder / "out"),
        "jobs": [{"id": JOB, **job(folder, request)}],
    }
    manifest = folder / "manifest.json"
    manifest.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return manifest


def remark(path: Path) -> Outcome | None:
    """Read the outcome from a program's JSON file; `malformed` if unreadable, None if missing or "ok"."""
    if not path.is_file():
        return None
    try:
        document = orjson.loads(read_inside(path.parent, path))
        kind, reason = str(document.get("outcome", "ok")), one_line(redacted(str(document.get("reason", ""))))
    except (ValueError, AttributeError) as error:
        return Outcome(
            OutcomeKind.MALFORMED, f"the program's {path.name} is not a JSON object: {one_line(str(error))}"
        )
    if kind == OK.kind.value:
        return None
    if kind not in REMARKS:
        known = ", ".join(("ok", *REMARKS))
        return Outcome(OutcomeKind.MALFORMED, f"the program's outcome {one_line(kind)!r} is none of {known}")
    return Outcome(REMARKS[kind], reason or "the program gave no reason")


def command_digest(command: WorkerCommand) -> str:
    """Return 12 hex digits of a hash of the command line and the files that its arguments name."""
    here = command.folder or Path()
    files = [here / word for word in command.command[1:] if (here / word).is_file()]
    parts = [*command.command, *(folder_digest(path) for path in files)]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]
