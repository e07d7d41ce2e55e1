"""The method of a run: its models, rubric and policy, made from the recipe; the same for every task."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plantain.models.hosted.known import known_model, roles_at
from plantain.models.presets import presets
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.restore import NONE, restore_identity
from plantain.records import InputError, Rubric
from plantain.records.suggestions import suggest
from plantain.roles import Editor, Judge, Writer, fingerprint_of
from plantain.rubrics import identity_of
from plantain.runs.setup import RunSetup

METHOD = "method"
"""Meta key of the fingerprints that a resumed run must repeat."""


@dataclass(frozen=True, slots=True)
class Method:
    """How a run edits and judges; see `Recipe` for the fields that it copies."""

    writer: Writer
    editor: Editor
    judges: tuple[Judge, ...]
    rubric: Rubric
    policy: str
    threshold: float
    max_rounds: int
    seed: int
    writer_sees_failed_edit: bool = False
    restore: str = NONE


def method_of(recipe: Recipe, setup: RunSetup | None = None, missing: list[str] | None = None) -> Method:
    """Return the recipe's models, rubric and policy as the loop needs them.

    Args:
        recipe: names the models.
        setup: the run's; without one the models can be inspected, and none of them sends an image anywhere.
        missing: takes a line for each key that is not set, instead of an error; such a model cannot be called.

    Raises:
        InputError: an unknown model, or one that cannot fill its role; a key or extra that is missing.
    """
    setup = setup or RunSetup(recipe.terms)
    judges = tuple(setup.judge(name, missing) for name in recipe.models.judges)
    for judge in judges:
        fingerprint_of(judge, recipe.judged_by)  # refuses a rubric by which it cannot judge
    return Method(
        writer=setup.writer(recipe.models.writer, missing),
        editor=setup.editor(recipe.models.editor, missing),
        judges=judges,
        rubric=recipe.judged_by,
        policy=recipe.loop.policy,
        threshold=recipe.loop.threshold,
        max_rounds=recipe.loop.max_rounds,
        seed=recipe.seed,
        writer_sees_failed_edit=recipe.loop.writer_sees_failed_edit,
        restore=recipe.loop.restore,
    )


def guarded(method: Method, setup: RunSetup) -> Method:
    """Return a method whose models the caller made, behind the run's gate."""
    judges = tuple(map(setup.guarded, method.judges))
    return replace(
        method, writer=setup.guarded(method.writer), editor=setup.guarded(method.editor), judges=judges
    )


def check_known(recipe: Recipe) -> None:
    """Refuse unknown ids at a provider's own address, and roles that a known model does not fill.

    An id that is newer than this plantain is accepted once its price is stated; behind another address (`base_url`) any
    id is.

    Raises:
        InputError: names the field, the nearest id, and how to insist.
    """
    models = recipe.models
    named = [("writer", models.writer), ("editor", models.editor)]
    for role, name in [*named, *(("judge", judge) for judge in models.judges)]:
        provider, _, model = name.partition("/")
        theirs = roles_at(recipe.terms.kind(name))
        section = recipe.terms.provider(name)
        if not theirs or not model or section.get("base_url") or model in section.prices or name in presets():
            continue
        row = known_model(f"{recipe.terms.kind(name)}/{model}")
        if row is None:
            near = suggest(name, [f"{provider}/{other.partition('/')[2]}" for other in theirs])
            raise InputError(
                f"models.{role}: no model {name!r} is known; {near} (if it is new, state its price: "
                f'[providers.{provider}.prices."{model}"] with input_per_m and output_per_m)'
            )
        if role not in row.roles:
            fit = [other for other, roles in theirs.items() if role in roles]
            hint = f"; for one, {fit[0]!r}" if fit else ""
            raise InputError(f"models.{role}: {name!r} can be {' and '.join(row.roles)}, not {role}{hint}")


def fingerprints(method: Method) -> dict[str, str]:
    """Return each part of the method with what changes whenever its answers could."""
    parts = {
        "writer": f"{method.writer.name}: {method.writer.fingerprint}",
        "editor": f"{method.editor.name}: {method.editor.fingerprint}",
        "rubric": " ".join(map(str, identity_of(method.rubric))),
    }
    for number, judge in enumerate(method.judges, start=1):
        parts[f"judge {number}"] = f"{judge.name}: {fingerprint_of(judge, method.rubric)}"
    return {**parts, **restore_identity(method.restore)}
