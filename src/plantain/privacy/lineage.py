"""Which pictures a picture was made from, by content, so that a licence follows every copy that this process makes."""

from __future__ import annotations

import hashlib

_SOURCES: dict[str, frozenset[str]] = {}
"""SHA-256 of a derived picture -> those of the pictures it was made from. A fact about bytes: it holds in every run."""


def sha256_of(data: bytes) -> str:
    """The hash by which a picture is known."""
    return hashlib.sha256(data).hexdigest()


def made_from(data: bytes, *sources: bytes) -> bytes:
    """Notes that a picture was made from others, and returns it: padded, drawn upon, laid side by side.

    Args:
        data: the new picture's file.
        sources: files of the pictures that show in it.
    """
    made, origins = sha256_of(data), frozenset(map(sha256_of, sources))
    if made not in origins:
        _SOURCES[made] = _SOURCES.get(made, frozenset()) | origins
    return data


def sources_of(sha256: str) -> frozenset[str]:
    """Hashes of the pictures that this one was made from; empty where nothing was noted."""
    return _SOURCES.get(sha256, frozenset())
