"""How a recipe's calls travel: which providers take batch jobs, and how many tasks are under way while they wait."""

from __future__ import annotations

from plantain.build.pricing import model_names
from plantain.build.recipe import Recipe
from plantain.models.openai.provider import UNVERIFIED
from plantain.records import InputError

WITH_JOBS = frozenset({"gemini", "openai"})


def models_in_jobs(recipe: Recipe) -> frozenset[str]:
    """The recipe's models whose calls wait for batch jobs."""
    return frozenset(model for model in model_names(recipe) if recipe.provider(model).transport == "batch")


def check_transports(recipe: Recipe) -> None:
    """Refuses batch jobs where there are none, or where nobody has verified how they are to be written.

    Raises:
        InputError: names the field and what to write instead.
    """
    for model in sorted(models_in_jobs(recipe)):
        provider = model.partition("/")[0]
        if provider not in WITH_JOBS:
            raise InputError(
                f'providers.{provider}.transport: {provider} has no batch jobs; use transport = "online" '
                f"(batch: {', '.join(sorted(WITH_JOBS))})"
            )
    editor = recipe.models.editor
    unverified = editor.startswith("openai/") and editor in models_in_jobs(recipe)
    if unverified and not recipe.provider(editor).batch.accept_unverified_edits:
        raise InputError(UNVERIFIED)


def tasks_under_way(recipe: Recipe) -> int:
    """Tasks walked at once: a wave where calls wait for jobs, else no more than may be in flight."""
    if models_in_jobs(recipe):
        return max(recipe.limits.concurrency, recipe.limits.wave)
    return recipe.limits.concurrency
