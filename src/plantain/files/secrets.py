"""Keys: read from the environment for those who need them, and kept from everybody else."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection
from pathlib import Path
from urllib.parse import unquote

from plantain.files.redaction import hide, is_dummy, redacted
from plantain.records import InputError

_BEARS_A_KEY = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_?\d+)?\Z|API_KEY|BEARER_TOKEN|SECRET|PASSWORD",
    re.IGNORECASE,
)
"""Variables of the environment that hold keys by their name, a provider's or anybody's."""

_PROXY = re.compile(r"_PROXY\Z", re.IGNORECASE)
"""Variables that hold the address of a proxy, often with a user's name and password."""

CHATTY = (
    "httpx2",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
)
"""Loggers of the HTTP client, which at their lowest level repeat headers and bodies as they come."""


class Secret:
    """A key. It shows itself to nobody who does not ask for `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        hide(value)

    def reveal(self) -> str:
        """The key itself, for a request alone."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a key is never written to a file")


class _Redaction(logging.Filter):
    """Takes every key out of a record before any handler sees it."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        hidden = redacted(message)
        if hidden != message:
            record.msg, record.args = hidden, ()
        return True


_redaction = _Redaction()


def hide_environment() -> None:
    """Hides the keys that the environment holds, before anything is printed or written."""
    for name, value in os.environ.items():
        if _PROXY.search(name):
            _hide_credentials(value.strip())
        elif _BEARS_A_KEY.search(name) and not _is_place(value.strip()):
            hide(value.strip())


def _hide_credentials(address: str) -> None:
    """Hides the password of an address, and name and password together, as they are sent to a proxy in base64."""
    before, at, _ = address.rpartition("@")
    written = before.rpartition("://")[2]
    for both in {written, unquote(written)} if at else ():
        hide(both, whatever=True)
        hide(both.partition(":")[2])


def _is_place(value: str) -> bool:
    """Whether a value says where a file with credentials lies, as GOOGLE_APPLICATION_CREDENTIALS does.

    Hidden like a key it would take the beginning of every path near it out of what is shown.
    """
    path = Path(value)
    try:
        return path.is_absolute() and path.parent != Path(path.anchor) and path.parent.is_dir()
    except OSError:  # longer than a name may be
        return False


class MissingKey(InputError):
    """No key is set, or a placeholder is: everything but a call can be done without."""


def key_from_environment(
    names: tuple[str, ...], provider: str, *, near: bool = False, later: bool = False
) -> Secret:
    """The key in the first of these environment variables that is set.

    Args:
        names: variables, the usual one first.
        provider: as a message names it.
        near: the address is this machine's, or declared to be on the premises; there any word may be the key.
        later: nothing is called yet, and a key that is missing is nobody's.

    Raises:
        MissingKey: none is set, or it holds a placeholder and the address is a stranger's; the line says which.
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
        for logger in CHATTY:
            logging.getLogger(logger).addFilter(_redaction)
        return key
    if later:
        return Secret("")
    raise MissingKey(
        f"{provider}: no key; set the environment variable {names[0]}"
        + (f" (or {' or '.join(names[1:])})" if len(names) > 1 else "")
    )


def environment_without_keys(named: Collection[str] = ()) -> dict[str, str]:
    """The environment for another program: no keys but those of the variables that its settings name.

    A proxy's address goes along whole: without it the program would reach nobody.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name in named or _PROXY.search(name) or not (_BEARS_A_KEY.search(name) or redacted(value) != value)
    }
