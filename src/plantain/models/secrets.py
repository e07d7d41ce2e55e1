"""Keys: read from the environment, kept out of every text that we keep or show."""

from __future__ import annotations

import os
from urllib.parse import quote

from plantain.records import InputError

HIDDEN = "[key]"


class Secret:
    """A key. It shows itself to nobody who does not ask for `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key itself, for the SDK alone."""
        return self._value

    def redact(self, text: str) -> str:
        """`text` without the key, neither plain nor percent-encoded."""
        if not self._value:
            return text
        for form in (self._value, quote(self._value, safe="")):
            text = text.replace(form, HIDDEN)
        return text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a key is never written down")


def key_from_environment(names: tuple[str, ...], provider: str) -> Secret:
    """The key in the first of these environment variables that is set.

    Raises:
        InputError: none is; the line says which to set.
    """
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            return Secret(value)
    raise InputError(
        f"{provider}: no key; set the environment variable {names[0]}"
        + (f" (or {' or '.join(names[1:])})" if len(names) > 1 else "")
    )
