"""The files of batch jobs in a run's folder: requests until the provider has them, answers until they are settled."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO

from plantain.files.writing import create
from plantain.journal.disk.blobs import sync_folder
from plantain.journal.disk.space import raise_if_full


class JobFiles:
    """Files by job, durable when they have their name.

    Args:
        folder: made when the first file is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def requests(self, job: str) -> Path:
        return self._folder / f"{job}.requests.jsonl"

    def answers(self, job: str) -> list[Path]:
        """The job's answer files that are here, whole."""
        return sorted(self._folder.glob(f"{job}.answers-*.jsonl"))

    def answer(self, job: str, number: int) -> Path:
        return self._folder / f"{job}.answers-{number}.jsonl"

    def write_requests(self, job: str, lines: Sequence[bytes]) -> None:
        """Writes a request file. Raises DiskFull."""
        self._folder.mkdir(exist_ok=True)
        sync_folder(self._folder.parent)
        temporary = self.requests(job).with_suffix(".new")
        with self.naming_full_disk(sum(map(len, lines))):
            with create(temporary) as file:
                for line in lines:
                    file.write(line)
                    file.write(b"\n")
            self.keep(temporary, self.requests(job))

    @contextlib.contextmanager
    def naming_full_disk(self, needed: int) -> Iterator[None]:
        """An error of a full disk becomes DiskFull, with the bytes that were to be written."""
        try:
            yield
        except OSError as error:
            raise_if_full(self._folder.parent, error, needed)
            raise

    def keep(self, temporary: Path, final: Path) -> None:
        """Gives a file that is whole its name."""
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(final)
        sync_folder(self._folder)

    @contextlib.contextmanager
    def nameless(self) -> Iterator[tuple[IO[bytes], Path]]:
        """A file that no folder lists and no kill leaves behind, and a path under which this process can write it."""
        self._folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            yield file, Path(f"/dev/fd/{file.fileno()}")

    def drop_requests(self, job: str) -> None:
        """The provider has them."""
        self.requests(job).unlink(missing_ok=True)

    def keep_only(self, jobs: Collection[str]) -> None:
        """Deletes what a process left that was killed between writing a file and journalling its job."""
        for path in self._folder.glob("*.*"):
            if path.name.partition(".")[0] not in jobs:
                path.unlink(missing_ok=True)

    def drop(self, job: str) -> None:
        """Nothing of the job is needed any more."""
        for path in self._folder.glob(f"{job}.*"):
            path.unlink(missing_ok=True)
