"""Keys: read from the environment, kept out of every text that we keep or show."""

from __future__ import annotations

import logging
import os
from urllib.parse import quote

from plantain.records import InputError

HIDDEN = "[key]"

CHATTY = (
    "httpx2",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
    "openai._base_client",
    "openai._legacy_response",
    "openai._response",
    "google_genai.models",
    "google_genai._api_client",
)
"""Loggers of the SDKs, which at their lowest level repeat headers and bodies as they come."""


class Secret:
    """A key. It shows itself to nobody who does not ask for `reveal`."""

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        self._forms = tuple(dict.fromkeys((value, quote(value, safe="")))) if value else ()

    def reveal(self) -> str:
        """The key itself, for the SDK alone."""
        return self._value

    def redact(self, text: str) -> str:
        """`text` without the key, neither plain nor percent-encoded."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def redact_bytes(self, data: bytes) -> bytes:
        """The same for bytes, e.g. of a file that is passed on line by line."""
        for form in self._forms:
            data = data.replace(form.encode(), HIDDEN.encode())
        return data

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a key is never written down")


class _Redaction(logging.Filter):
    """Takes a key out of every record before any handler sees it."""

    def __init__(self, key: Secret) -> None:
        super().__init__()
        self._key = key

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        hidden = self._key.redact(said)
        if hidden != said:
            record.msg, record.args = hidden, ()
        return True


_hidden: set[str] = set()


def hide_in_logs(key: Secret) -> None:
    """From now on the SDKs' own loggers keep this key to themselves."""
    value = key.reveal()
    if not value or value in _hidden:
        return
    _hidden.add(value)
    for name in CHATTY:
        logging.getLogger(name).addFilter(_Redaction(key))


def key_from_environment(names: tuple[str, ...], provider: str) -> Secret:
    """The key in the first of these environment variables that is set.

    Raises:
        InputError: none is; the line says which to set.
    """
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            key = Secret(value)
            hide_in_logs(key)
            return key
    raise InputError(
        f"{provider}: no key; set the environment variable {names[0]}"
        + (f" (or {' or '.join(names[1:])})" if len(names) > 1 else "")
    )
