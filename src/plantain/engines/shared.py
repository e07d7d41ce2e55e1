"""A folder that head and workers share: pictures are written once, by who made them, and named by their SHA-256."""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from plantain.engines.packing import LARGE

SEEN_WITHIN_S = 10.0
"""Within which what one machine has made durable is seen by the others; NFS keeps names for some seconds."""

ARRIVED, STORED = "arrived", "stored"

_serial = itertools.count()


class NotShared(Exception):
    """A machine cannot read or write the shared folder."""


@dataclass(frozen=True, slots=True)
class SharedPictures:
    """A `PictureStore`.

    Workers put what they made into the folder of the head that asked them, so that what a worker of an earlier head
    still writes never reaches a later one: that folder is gone.

    Attributes:
        stored: the run's blobs, `ab/<sha256>`, written by the head alone.
        arriving: where workers of this head put what they made, under its SHA-256.
        worker: on a worker's machine.
    """

    stored: str
    arriving: str
    worker: bool = False

    def on_workers(self) -> Self:
        """The same for workers."""
        return replace(self, worker=True)

    def keep(self, found: object) -> tuple[str, ...] | None:
        """On a worker: writes a picture, durable on return. On the head: names one that is stored already.

        Raises:
            NotShared: a worker cannot write to the folder.
        """
        if type(found) is not bytes or len(found) < LARGE:
            return None
        sha256 = hashlib.sha256(found).hexdigest()
        if not self.worker:
            return (STORED, sha256) if self._path(STORED, sha256).is_file() else None
        try:
            self._write(sha256, found)
        except OSError as error:
            raise NotShared(self._unusable(error)) from error
        return ARRIVED, sha256

    def kept(self, address: tuple[str, ...]) -> object:
        """The picture, held to its hash. Raises NotShared."""
        where, sha256 = address
        until = time.monotonic() + SEEN_WITHIN_S
        while True:
            try:
                data = self._path(where, sha256).read_bytes()
            except OSError as error:
                if not isinstance(error, FileNotFoundError) or time.monotonic() > until:
                    raise NotShared(self._unusable(error)) from error
            else:
                if hashlib.sha256(data).hexdigest() == sha256:
                    return data
                if time.monotonic() > until:
                    raise NotShared(self._unusable(f"{sha256} holds other bytes"))
            time.sleep(0.05)

    def _path(self, where: str, sha256: str) -> Path:
        arrived, stored = Path(self.arriving, sha256), Path(self.stored, sha256[:2], sha256)
        # Two answers may be one picture: with the first, the head has moved what arrived for both.
        return arrived if where == ARRIVED and (arrived.is_file() or not stored.is_file()) else stored

    def _write(self, sha256: str, data: bytes) -> None:
        path = Path(self.arriving, sha256)
        temporary = path.with_name(f".{sha256}.{socket.gethostname()}.{os.getpid()}.{next(_serial)}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _unusable(self, why: object) -> str:
        return (
            f"{socket.gethostname()} cannot use {Path(self.arriving).parents[1]} ({why}); --blobs wants a folder "
            "that every machine can write to under the same path"
        )
