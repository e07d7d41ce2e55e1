"""The files of batch jobs in a run's folder: requests until the provider has them, answers until they are settled."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from plantain.files.opening import create
from plantain.files.secrets import redacted_line
from plantain.journal.blobs import raise_if_full, sync_folder
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import Fault, read_body


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an answer file, at `offset` and of `length` bytes; read on use, as not all lines fit in memory."""

    file: Path
    offset: int
    length: int

    def read(self) -> JsonObject:
        """Read the line from its file and return its JSON object. Raise Fault if it is not one."""
        with self.file.open("rb") as file:
            file.seek(self.offset)
            return read_body(file.read(self.length))


def index(
    files: Iterable[Path], key_of: Callable[[JsonObject], str], read: Callable[[JsonObject], JsonObject]
) -> tuple[dict[str, Line], int]:
    """Index the lines of answer files by request key; return the index and the number of repeated lines.

    Of several lines for one request, the first that `read` accepts counts; `read` raises Fault for an error.
    Lines that are not JSON objects, or name no request, are ignored.
    """
    found: dict[str, Line] = {}
    repeated = 0
    for path in files:
        offset = 0
        with path.open("rb") as file:
            for raw in file:
                if raw.strip():
                    with contextlib.suppress(Fault):
                        key = key_of(read_body(raw))
                        if key and (key not in found or _is_error(found[key], read)):
                            found[key] = Line(path, offset, len(raw))
                        elif key:
                            repeated += 1
                offset += len(raw)
    return found, repeated


def _is_error(line: Line, read: Callable[[JsonObject], JsonObject]) -> bool:
    try:
        read(line.read())
    except Fault:
        return True
    return False


class JobFiles:
    """The request and answer files of a run's batch jobs; a file with its final name is complete and durable.

    Args:
        folder: the folder, created with the first file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def requests(self, job: str) -> Path:
        return self._folder / f"{job}.requests.jsonl"

    def answers(self, job: str) -> list[Path]:
        """Return the paths of the job's complete answer files, sorted."""
        return sorted(self._folder.glob(f"{job}.answers-*.jsonl"))

    def answer(self, job: str, number: int) -> Path:
        return self._folder / f"{job}.answers-{number}.jsonl"

    def write_requests(self, job: str, lines: Sequence[bytes]) -> None:
        """Write a job's request file, one line each. Raise DiskFull if it does not fit."""
        self._folder.mkdir(exist_ok=True)
        sync_folder(self._folder.parent)
        temporary = self.requests(job).with_suffix(".new")
        with self.naming_full_disk(sum(map(len, lines))):
            with create(temporary) as file:
                for line in lines:
                    file.write(line)
                    file.write(b"\n")
            self._keep(temporary, self.requests(job))

    @contextlib.contextmanager
    def naming_full_disk(self, needed: int) -> Iterator[None]:
        """Convert the OSError of a full disk in the block to DiskFull, with the number of bytes needed."""
        try:
            yield
        except OSError as error:
            raise_if_full(self._folder.parent, error, needed)
            raise

    def nameless(self) -> IO[bytes]:
        """Open an unnamed temporary file, which disappears with the process, for a download that may contain keys."""
        self._folder.mkdir(exist_ok=True)
        return tempfile.TemporaryFile(dir=self._folder)

    def keep_answer(self, raw: IO[bytes], job: str, number: int) -> None:
        """Store a downloaded file as the job's answer file of that number, with any keys removed."""
        clean = self.answer(job, number).with_suffix(".clean")
        raw.seek(0)
        with create(clean) as sink:
            for line in raw:
                sink.write(redacted_line(line))
        self._keep(clean, self.answer(job, number))

    def _keep(self, temporary: Path, final: Path) -> None:
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(final)
        sync_folder(self._folder)

    def drop_requests(self, job: str) -> None:
        """Delete a job's request file, once the provider has it."""
        self.requests(job).unlink(missing_ok=True)

    def keep_only(self, jobs: Collection[str]) -> None:
        """Delete the files of all other jobs, which a killed process wrote without journalling them."""
        for path in self._folder.glob("*.*"):
            if path.name.partition(".")[0] not in jobs:
                path.unlink(missing_ok=True)

    def drop(self, job: str) -> None:
        """Delete all files of a job."""
        for path in self._folder.glob(f"{job}.*"):
            path.unlink(missing_ok=True)
