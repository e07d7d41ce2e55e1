"""Model calls: reuse recorded answers, limit rates and cost, retry by outcome, and end calls at a deadline."""

from plantain.calls.admission import AdmissionController, ModelLimits, Ticket
from plantain.calls.client import Answer, CallSpec, ModelClient, ModelDrift, TaskCalls
from plantain.calls.limits import Budget
from plantain.calls.policy import Interrupted, LimitReached, RequestChanged, RunHalted

__all__ = [
    "AdmissionController",
    "Answer",
    "Budget",
    "CallSpec",
    "Interrupted",
    "LimitReached",
    "ModelClient",
    "ModelDrift",
    "ModelLimits",
    "RequestChanged",
    "RunHalted",
    "TaskCalls",
    "Ticket",
]
