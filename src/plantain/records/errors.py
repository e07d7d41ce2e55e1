"""The one error that a person is shown as a line."""

from __future__ import annotations


class InputError(ValueError):
    """Something that a person handed us cannot be used. The message is one line: file, field, what is allowed."""
