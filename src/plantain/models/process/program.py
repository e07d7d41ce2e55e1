"""Another program as an editor: started once, given manifests by path, watched, and killed when it hangs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from pathlib import Path

from plantain.files.redaction import redacted
from plantain.files.secrets import environment_without_keys
from plantain.models.process.settings import WorkerCommand
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind

LINE = 1 << 20
"""Most bytes of one line of output; a program that prints more is ended."""

LAST_MOMENTS_S = 2.0
"""A program that has closed its output has this long to end by itself."""


class Program:
    """A worker's process. One manifest at a time: its path goes in as a line, and comes back as a line when it is done.

    Args:
        name: of the editor, for messages.
        command: how it is started.
    """

    def __init__(self, name: str, command: WorkerCommand) -> None:
        self.name = name
        self.command = command
        self._process: asyncio.subprocess.Process | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the program

    async def run(self, manifest: Path) -> Outcome | None:
        """Run one manifest; return None on success, else the outcome.

        A program that crashed or hung is ended; the next manifest starts it again.
        """
        try:
            async with asyncio.timeout(self.command.timeout_s):
                process = await self._running()
                return await self._ask(process, manifest)
        except TimeoutError:
            await self.close(at_once=True)
            return Outcome(
                OutcomeKind.TRANSPORT,
                f"{self.name}: gave no answer within {self.command.timeout_s:g} s; it was ended",
            )
        except OSError as error:
            why = f"{self.name}: {self.command.command[0]!r} could not be started: {one_line(str(error))}"
            return Outcome(OutcomeKind.TRANSPORT, why, fatal=True)

    async def close(self, *, at_once: bool = False) -> None:
        """End the program by closing its input, then by SIGKILL."""
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
            await self.close(at_once=True)
            return Outcome(OutcomeKind.TRANSPORT, f"{self.name}: printed a megabyte without a line's end")
        except (BrokenPipeError, ConnectionResetError):
            pass
        return await self._crashed(process)

    async def _crashed(self, process: asyncio.subprocess.Process) -> Outcome:
        with contextlib.suppress(TimeoutError):  # one that has closed its output is about to say its status
            await asyncio.wait_for(process.wait(), LAST_MOMENTS_S)
        await self.close(at_once=True)
        code = process.returncode or 0
        self._stderr.seek(0)
        lines = redacted(self._stderr.read().decode("utf-8", "replace")).strip().splitlines()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code} before it was done"
        last = f": {one_line(lines[-1])}" if lines else ""
        return Outcome(OutcomeKind.TRANSPORT, f"{self.name}: the program {how}{last}")
