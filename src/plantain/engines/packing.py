"""Work and answers as bytes: pictures apart from the rest, under their SHA-256, each once."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from typing import Protocol

LARGE = 16_384
"""Bytes from which on a file travels apart."""


class PictureStore(Protocol):
    """A folder that head and workers share, in which files stand under their SHA-256."""

    def on_workers(self) -> PictureStore:
        """What workers are given of it."""
        ...

    def keep(self, found: object) -> tuple[str, ...] | None:
        """Stores a picture, durable on return, and says by what `kept` finds it; None for what is no picture."""
        ...

    def kept(self, address: tuple[str, ...]) -> object:
        """The picture that `keep` stored."""
        ...


class _Packer(pickle.Pickler):
    def __init__(self, to: io.BytesIO, store: PictureStore | None) -> None:
        super().__init__(to, protocol=5)
        self.pictures: dict[str, bytes] = {}
        self._store = store

    def persistent_id(self, found: object) -> tuple[str, ...] | None:
        if self._store is not None and (address := self._store.keep(found)) is not None:
            return address
        if type(found) is bytes and len(found) >= LARGE:
            sha256 = hashlib.sha256(found).hexdigest()
            self.pictures[sha256] = found
            return (sha256,)
        return None


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, pictures: Mapping[str, bytes], store: PictureStore | None) -> None:
        super().__init__(io.BytesIO(data))
        self._pictures, self._store = pictures, store

    def persistent_load(self, address: tuple[str, ...]) -> object:
        if len(address) == 1:
            return self._pictures[address[0]]
        assert self._store is not None, "a picture in a folder that this side does not know"
        return self._store.kept(address)


def pack(value: object, store: PictureStore | None = None) -> tuple[bytes, dict[str, bytes]]:
    """A value as bytes, and its large files by their SHA-256; those that a store keeps go by name alone."""
    to = io.BytesIO()
    packer = _Packer(to, store)
    packer.dump(value)
    return to.getvalue(), packer.pictures


def unpack(data: bytes, pictures: Mapping[str, bytes], store: PictureStore | None = None) -> object:
    """What `pack` made into bytes on another machine of the same user."""
    return _Unpacker(data, pictures, store).load()
