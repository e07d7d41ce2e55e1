"""How a run's calls travel: which providers take batch jobs, and how many tasks are under way while they wait."""

from __future__ import annotations

from plantain.models.diffusers.devices import calls_in_flight, device_names
from plantain.runs.settings.terms import Terms

ON_WORKERS = frozenset({"offline", "diffusers", "process"})
"""Providers whose models an engine's workers compute."""


def models_in_jobs(terms: Terms) -> frozenset[str]:
    """The models whose calls wait for batch jobs."""
    return frozenset(model for model in terms.models if terms.provider(model).in_jobs)


def calls_at_once(terms: Terms, model: str) -> int:
    """Most calls of a model in flight: what is said; where nothing is, as many as keep every device here busy.

    With the default of 8, eight GPUs that take four edits together would stand idle most of the time.
    """
    limits, section = terms.limits, terms.provider(model)
    if section.concurrency is not None:
        return section.concurrency
    if section.in_jobs:
        return max(limits.concurrency, limits.wave)
    if "concurrency" in limits.model_fields_set:
        return limits.concurrency
    if terms.room and terms.kind(model) in ON_WORKERS:
        return max(limits.concurrency, 2 * terms.room)
    return max(limits.concurrency, calls_in_flight(devices_of(terms, model), section.get("batch_size")))


def devices_of(terms: Terms, model: str) -> tuple[str, ...]:
    """The devices that an open editor draws on, in processes of their own; of other models none are known."""
    return device_names(terms.provider(model).get("device") or "") if model.startswith("diffusers/") else ()


def tasks_under_way(terms: Terms) -> int:
    """Tasks walked at once: as many as calls may be in flight."""
    return max((calls_at_once(terms, model) for model in terms.models), default=terms.limits.concurrency)
