"""What stands around every model call: memo, admission, retry by outcome, money, deadline."""

from plantain.calls.admission import Admission, Bounded, Ticket
from plantain.calls.context import (
    Answer,
    CallDesk,
    CallSpec,
    Interrupted,
    RequestChanged,
    RunHalted,
    TaskCalls,
)
from plantain.calls.policy import Retry, next_step

__all__ = [
    "Admission",
    "Answer",
    "Bounded",
    "CallDesk",
    "CallSpec",
    "Interrupted",
    "RequestChanged",
    "Retry",
    "RunHalted",
    "TaskCalls",
    "Ticket",
    "next_step",
]
