"""The terminal as the last place where a key could show: everything printed passes the redaction."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO, cast

from plantain.files.redaction import redacted
from plantain.files.secrets import hide_environment


class _Redacted:
    """A text stream that prints no key; in all else the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self.redacts = stream

    def write(self, text: str) -> int:
        self.redacts.write(redacted(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.redacts, name)


def redact_terminal() -> None:
    """From now on neither stdout nor stderr shows a key, tracebacks with locals included."""
    hide_environment()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Redacted):
            setattr(sys, name, cast(TextIO, _Redacted(stream)))
