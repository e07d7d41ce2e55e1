"""Sources of derived images, by content, so that a licence applies to every copy that this process makes."""

from __future__ import annotations

import hashlib

_SOURCES: dict[str, frozenset[str]] = {}
"""SHA-256 of a derived image -> those of its source images, in every run."""


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of an image's file, in hex."""
    return hashlib.sha256(data).hexdigest()


def made_from(data: bytes, *sources: bytes) -> bytes:
    """Record that an image was made from others (padded, annotated, joined), and return it.

    Args:
        data: the new image's file.
        sources: files of the images that it shows.
    """
    made, origins = sha256_of(data), frozenset(map(sha256_of, sources))
    if made not in origins:
        _SOURCES[made] = _SOURCES.get(made, frozenset()) | origins
    return data


def sources_of(sha256: str) -> frozenset[str]:
    """Return hashes of the images that this one was made from; empty if none were recorded."""
    return _SOURCES.get(sha256, frozenset())
