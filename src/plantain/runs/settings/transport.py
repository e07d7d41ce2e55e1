"""How a run's calls travel: which providers take batch jobs, and how many tasks are under way while they wait."""

from __future__ import annotations

from plantain.models.diffusers.devices import calls_in_flight, device_names
from plantain.records import InputError
from plantain.runs.settings.terms import Terms

ON_WORKERS = frozenset({"offline", "diffusers", "process"})
"""Providers whose models an engine's workers compute."""

WITH_JOBS = frozenset({"gemini", "openai", "vertex"})


def models_in_jobs(terms: Terms) -> frozenset[str]:
    """The models whose calls wait for batch jobs."""
    return frozenset(model for model in terms.models if terms.provider(model).transport == "batch")


def check_transports(terms: Terms) -> None:
    """Refuses batch jobs where there are none.

    Raises:
        InputError: names the field and what to write instead.
    """
    for model in sorted(models_in_jobs(terms)):
        provider = model.partition("/")[0]
        if terms.kind(model) not in WITH_JOBS:
            raise InputError(
                f'providers.{provider}.transport: {provider} has no batch jobs; use transport = "online" '
                f"(batch: {', '.join(sorted(WITH_JOBS))})"
            )


def calls_at_once(terms: Terms, model: str) -> int:
    """Most calls of a model in flight: what is said; where nothing is, as many as keep every device here busy.

    With the default of 8, eight GPUs that take four edits together would stand idle most of the time.
    """
    limits, section = terms.limits, terms.provider(model)
    if section.concurrency is not None:
        return section.concurrency
    if section.transport == "batch":
        return max(limits.concurrency, limits.wave)
    if "concurrency" in limits.model_fields_set:
        return limits.concurrency
    if terms.room and terms.kind(model) in ON_WORKERS:
        return max(limits.concurrency, 2 * terms.room)
    return max(limits.concurrency, calls_in_flight(devices_of(terms, model), section.batch_size))


def devices_of(terms: Terms, model: str) -> tuple[str, ...]:
    """The devices that an open editor draws on, in processes of their own; of other models none are known."""
    return device_names(terms.provider(model).device) if model.startswith("diffusers/") else ()


def tasks_under_way(terms: Terms) -> int:
    """Tasks walked at once: as many as calls may be in flight."""
    return max((calls_at_once(terms, model) for model in terms.models), default=terms.limits.concurrency)
