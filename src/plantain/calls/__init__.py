"""What stands around every model call: memo, admission, retry by outcome, money, deadline."""

from plantain.calls.admission import Admission, Bounded, Ticket
from plantain.calls.budget import Budget
from plantain.calls.client import (
    Answer,
    CallSpec,
    ModelClient,
    TaskCalls,
)
from plantain.calls.controller import AdmissionController
from plantain.calls.model_drift import ModelDrift
from plantain.calls.policy import Retry, next_step
from plantain.calls.rate_limiter import ModelLimits
from plantain.calls.stops import Interrupted, LimitReached, RequestChanged, RunHalted

__all__ = [
    "Admission",
    "AdmissionController",
    "Answer",
    "Bounded",
    "Budget",
    "CallSpec",
    "Interrupted",
    "LimitReached",
    "ModelClient",
    "ModelDrift",
    "ModelLimits",
    "RequestChanged",
    "Retry",
    "RunHalted",
    "TaskCalls",
    "Ticket",
    "next_step",
]
