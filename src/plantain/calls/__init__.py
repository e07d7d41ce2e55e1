"""What stands around every model call: memo, admission, retry by outcome, money, deadline."""

from plantain.calls.admission import Admission, Bounded, Ticket
from plantain.calls.context import (
    Answer,
    CallDesk,
    CallSpec,
    TaskCalls,
)
from plantain.calls.gate import Gate
from plantain.calls.lane import LaneRules
from plantain.calls.money import Purse
from plantain.calls.policy import Retry, next_step
from plantain.calls.served import ServedModels
from plantain.calls.stops import Interrupted, LimitReached, RequestChanged, RunHalted

__all__ = [
    "Admission",
    "Answer",
    "Bounded",
    "CallDesk",
    "CallSpec",
    "Gate",
    "Interrupted",
    "LaneRules",
    "LimitReached",
    "Purse",
    "RequestChanged",
    "Retry",
    "RunHalted",
    "ServedModels",
    "TaskCalls",
    "Ticket",
    "next_step",
]
