"""The error that the command line shows as one line."""

from __future__ import annotations


class InputError(ValueError):
    """A user's input cannot be used. The message is one line: file, field, what is allowed."""
