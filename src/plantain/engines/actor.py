"""What runs on a worker of a Ray cluster: one piece of work at a time, by a process that keeps what it loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from plantain.engines.machine import machine_kind
from plantain.engines.packing import PictureStore, pack, unpack
from plantain.records import InputError
from plantain.version import __version__

Work = tuple[Callable[..., object], tuple[object, ...]]


class RemoteWorker:
    """Made by Ray on a worker's machine.

    Args:
        environment: variables that it gets.
        store: the folder that it shares with the head; None where pictures travel.
        version: the head's plantain. Raises InputError where another is installed here: other code, other pictures.
    """

    def __init__(self, environment: Mapping[str, str], store: PictureStore | None, version: str) -> None:
        if version != __version__:
            raise InputError(
                f"plantain {__version__} on a worker's machine, {version} on the head's: install one"
            )
        os.environ.update(environment)
        import cv2

        cv2.setNumThreads(1)
        self._store = store

    def kind(self) -> str:
        """What it computes on."""
        return machine_kind()

    def run(self, work: bytes, names: Sequence[str], *pictures: bytes) -> tuple[bytes | list[str], ...]:
        """Does a piece of work: (function, arguments), packed. Returns the packed answer, names and pictures."""
        known = dict(zip(names, pictures, strict=True))
        function, arguments = cast(Work, unpack(work, known, self._store))
        answer, files = pack(function(*arguments), self._store)
        return answer, list(files), *files.values()
