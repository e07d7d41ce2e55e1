"""The method of a run: its models, rubric and policy, made from the recipe."""

from __future__ import annotations

from plantain.models.registry import provider_names, resolve_editor, resolve_judge, resolve_writer
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.rounds import Method
from plantain.rubrics import MED_BANANA
from plantain.runs.door import Door


def method_of(recipe: Recipe, door: Door | None = None) -> Method:
    """The recipe's models, rubric and policy as the loop needs them.

    Args:
        recipe: whose models.
        door: the run's; without one the models can be looked at, and none of them sends a picture anywhere.
    """
    options = (door or Door(recipe.terms)).options
    return Method(
        writer=resolve_writer(recipe.models.writer, options(recipe.models.writer, "writer")),
        editor=resolve_editor(recipe.models.editor, options(recipe.models.editor, "editor")),
        judges=tuple(
            resolve_judge(name, options(name, f"judge {number}"))
            for number, name in enumerate(recipe.models.judges, start=1)
        ),
        rubric=MED_BANANA,
        policy=recipe.loop.policy,
        threshold=recipe.loop.threshold,
        max_rounds=recipe.loop.max_rounds,
        seed=recipe.seed,
        writer_sees_failed_edit=recipe.loop.writer_sees_failed_edit,
    )


def check_offline_models(recipe: Recipe) -> None:
    """Refuses names of offline models that do not exist or do not fill their role; needs no key and loads no weights.

    Raises:
        InputError: the model, its role, and the nearest one that exists.
    """
    models = recipe.models
    for resolve, names in (
        (resolve_writer, (models.writer,)),
        (resolve_editor, (models.editor,)),
        (resolve_judge, models.judges),
    ):
        for name in names:
            if name.partition("/")[0] not in provider_names() or name.startswith("offline/"):
                resolve(name)


def fingerprints(method: Method) -> dict[str, str]:
    """Each part of the method with what changes whenever its answers could."""
    parts = {
        "writer": f"{method.writer.name}: {method.writer.fingerprint}",
        "editor": f"{method.editor.name}: {method.editor.fingerprint}",
        "rubric": f"{method.rubric.name} {method.rubric.version}",
    }
    for number, judge in enumerate(method.judges, start=1):
        parts[f"judge {number}"] = f"{judge.name}: {judge.fingerprint}"
    return parts
