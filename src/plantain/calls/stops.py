"""Reasons to make no more calls: some end one task, others the whole run."""

from __future__ import annotations


class Interrupted(Exception):
    """The run was asked to stop; this task stays pending and goes on when the run is resumed."""


class RunHalted(Exception):
    """The whole run cannot go on (bad key, exhausted quota); the message says what to do."""


class RequestChanged(RunHalted):
    """A recorded call would be asked differently now: prompt, model or image changed under the run."""


class LimitReached(RunHalted):
    """A cap of the recipe is used up: no fault, and the run goes on with a new one. The message names the cap."""
