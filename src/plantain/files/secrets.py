"""Keys: read from the environment for the SDK that needs them, and hidden everywhere else."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable
from typing import TextIO, cast
from urllib.parse import unquote

from plantain.files.redaction import hide, is_dummy, redacted
from plantain.records import InputError

_HOLDS_A_KEY = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD)(_?\d+)?\Z|API_KEY|BEARER_TOKEN|SECRET|PASSWORD", re.IGNORECASE
)
"""Variables of the environment that hold keys by their name."""

_PROXY = re.compile(r"_PROXY\Z", re.IGNORECASE)
"""Variables that hold the address of a proxy, often with a user's name and password."""


class Secret:
    """A key. Only `reveal` shows it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        hide(value)

    def reveal(self) -> str:
        """Return the key; use only in requests."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a key is never written to a file")


class MissingKey(InputError):
    """No key is set, or a placeholder is. Everything but a call works without one."""


def _redact_logs() -> None:
    """Remove every key from log records before any handler sees them: SDKs log headers and bodies as they are."""
    made = logging.getLogRecordFactory()
    if made is not _record:
        _factories.append(made)
        logging.setLogRecordFactory(_record)


def _record(*args: object, **named: object) -> logging.LogRecord:
    record = _factories[-1](*args, **named)
    record.msg, record.args = redacted(record.getMessage()), ()
    return record


_factories: list[Callable[..., logging.LogRecord]] = []


DISGUISES = re.compile(
    r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, which could have a terminal do something, and those that turn the direction of text."""


def harmless(text: str) -> str:
    """Return text with control characters written out, so that a terminal shows them; JSON stays the same JSON."""
    return DISGUISES.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x7F else f"\\u{code:04x}"


class RedactedStream:
    """A text stream that prints no key, and shows what would be a command to the terminal.

    Args:
        stream: that it writes to.
        commands: pass control characters through, for a console that cleans its output itself.
    """

    def __init__(self, stream: TextIO, *, commands: bool = False) -> None:
        self.redacts, self._commands = stream, commands

    def write(self, text: str) -> int:
        shown = redacted(text)
        self.redacts.write(shown if self._commands else harmless(shown))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.redacts, name)


def redact_terminal() -> None:
    """Hide the keys of the environment, and keep every key out of stdout and stderr, including tracebacks."""
    hide_environment()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, RedactedStream):
            setattr(sys, name, cast(TextIO, RedactedStream(stream)))


def hide_environment() -> None:
    """Hide the keys and proxy passwords that the environment holds."""
    for name, value in os.environ.items():
        if _HOLDS_A_KEY.search(name):
            hide(value.strip())
        elif _PROXY.search(name) and "@" in value:
            # Sent to a proxy as base64 of name and password together.
            written = value.strip().rpartition("@")[0].rpartition("://")[2]
            for both in {written, unquote(written)}:
                hide(both, whatever=True)
                hide(both.partition(":")[2])


def key_from_environment(
    names: tuple[str, ...], provider: str, *, near: bool = False, later: bool = False
) -> Secret:
    """Return the key in the first of these environment variables that is set.

    Args:
        names: variables, the usual one first.
        provider: as a message names it.
        near: the address is this machine's, or declared to be on the premises; there any word may be the key.
        later: nothing is called yet, so a missing key is an empty one.

    Raises:
        MissingKey: none is set, or it holds a placeholder and the address is not `near`.
    """
    for name in names:
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        if is_dummy(value) and not near:
            if later:
                return Secret("")
            raise MissingKey(
                f"{provider}: {name} holds a placeholder, too short or too plain for a key; such a word is taken "
                "only by servers on this machine or with on_premises = true"
            )
        key = Secret(value)
        _redact_logs()
        return key
    if later:
        return Secret("")
    raise MissingKey(
        f"{provider}: no key; set the environment variable {names[0]}"
        + (f" (or {' or '.join(names[1:])})" if len(names) > 1 else "")
    )


def environment_without_keys(named: Collection[str] = ()) -> dict[str, str]:
    """Return the environment for another program: without keys, except the variables that its settings name.

    Proxy addresses are passed on whole: without them the program would reach no server.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name in named or _PROXY.search(name) or not (_HOLDS_A_KEY.search(name) or redacted(value) != value)
    }
