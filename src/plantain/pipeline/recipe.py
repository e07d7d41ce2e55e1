"""The recipe of a build, validated field by field, and the method (models, rubric, policy) that it names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import Field

from plantain.engines.contract import HERE, EngineSection
from plantain.journal import JsonValue
from plantain.records import Direction, InputError, Rubric
from plantain.roles import Editor, Judge, Writer, fingerprint_of
from plantain.roles.options import Section
from plantain.rubrics import MED_BANANA, frozen, identity_of, rubric_named
from plantain.runs.settings_file import (
    ConsentGiven,
    Limits,
    Providers,
    RoleTables,
    check_provider_names,
    read_toml,
    resolve_provider_paths,
)
from plantain.runs.terms import Terms

if TYPE_CHECKING:
    from plantain.runs.setup import RunSetup

NONE = "none"

NAME = r"^[\w .-]+$"
"""Names of recipes."""


class Data(Section):
    """The section `[data]` of a recipe: images, findings and directions.

    `catalogue` is the folder that `ingest` made. `findings` names the findings to add or remove; default: all of
    the images' modalities. `directions`: add findings, remove them, or both. `finding_files` define further
    findings. `consent` is needed if an image that is credentialed, or of unknown licence, would leave this machine.
    `add_to`: add a finding to "normal" images only (as in the paper), or to "any" image that is not labelled with
    it. `per_finding` limits the tasks of each finding and direction; their images are chosen at random by seed.
    `accepted_per_finding`: the number of accepted edits to make of each finding and direction; the build tries further
    images until that many qualify, no image is left (per_finding still applies), or a limit stops the run. The
    last images are tried together, so a few more may qualify; shards share the number equally. `yield_floor`: a
    finding and direction also ends if the 95 % interval of its share of accepted edits is below this; 0 for never.
    `check_text`: an edit that moves a marker or draws text does not qualify, if text can be read (extra `ocr`); this
    takes about a second of CPU time per edit.
    """

    catalogue: Path
    findings: tuple[str, ...] = ()
    directions: tuple[Literal[Direction.ADD, Direction.REMOVE], ...] = (Direction.ADD, Direction.REMOVE)
    per_finding: Annotated[int, Field(ge=1)] | None = None
    accepted_per_finding: Annotated[int, Field(ge=1)] | None = None
    yield_floor: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.05
    add_to: Literal["normal", "any"] = "normal"
    finding_files: tuple[Path, ...] = ()
    check_text: bool = True
    consent: ConsentGiven | None = None


class Models(Section):
    """The section `[models]` of a recipe: names of the models, "provider/model".

    The `writer` writes the instructions and refines them. The `editor` makes the edits. The `judge` answers the
    rubric's questions about each edit; a list is a panel, which decides by majority, and a judge that is listed k times
    gives k draws.
    """

    writer: str = "offline/templates"
    editor: str = "offline/procedural"
    judge: str | Annotated[tuple[str, ...], Field(min_length=1)] = "offline/instruments"

    @property
    def judges(self) -> tuple[str, ...]:
        return (self.judge,) if isinstance(self.judge, str) else self.judge


class Loop(Section):
    """The section `[loop]` of a recipe: the number of rounds, and the conditions for an accepted edit.

    A task has `max_rounds` attempts at most, including the first one. Under `policy` "all-pass" every criterion must
    pass; under "weighted" the weighted score must reach `threshold`.

    `restore`: "outside" restores the original around the edit before it is judged; the editor's answer is also kept.
    This takes about one second of CPU time per image and no call.

    `turns`: with 2 to 5, an accepted edit is edited again: a task of the next turn adds or removes a further finding,
    chosen at random by seed. It is judged against the result of the turn before. It also must not differ from the
    original where no turn made a change. The turns of an image end with the first edit that is not accepted.
    """

    max_rounds: Annotated[int, Field(ge=1, le=20)] = 5
    policy: Literal["all-pass", "weighted"] = "all-pass"
    threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.7
    restore: Literal["none", "outside"] = "none"
    turns: Annotated[int, Field(ge=1, le=5)] = 1


class Recipe(Section):
    """A build as its TOML file describes it; immutable.

    Attributes:
        name: name of the build in pages and releases.
        seed: number that determines all random choices: the same seed and catalogue give the same tasks.
        data, models, loop, limits, engine: the sections of these names.
        rubric: name of the rubric that judges edits, or a TOML file with one; "" for Med-Banana's. Its policy
            and threshold apply unless `loop` sets them.
        providers: settings by provider.
        settings: settings by role ("writer", "editor", "judge"), which replace those of the provider.

    Example:
        >>> Recipe.load("pilot.toml").data.findings
        ('AMD', 'Cataract')
        >>> Recipe.model_validate({"name": "own", "data": {"catalogue": "catalogue"}}).loop.max_rounds
        5
    """

    name: Annotated[str, Field(min_length=1, pattern=NAME)]
    seed: Annotated[int, Field(ge=0)] = 0
    data: Data
    models: Models = Models()
    rubric: str = ""
    loop: Loop = Loop()
    limits: Limits = Limits()
    providers: Providers = Field(default_factory=dict)
    settings: RoleTables = Field(default_factory=dict)
    engine: EngineSection = HERE

    @classmethod
    def load(cls, path: Path | str) -> Recipe:
        """Read a recipe's TOML file; relative paths in it start at its folder. Raise InputError if it is invalid."""
        return load_recipe(Path(path))

    @property
    def judged_by(self) -> Rubric:
        """The rubric that `rubric` names, Med-Banana's by default. Raises InputError if it is unknown or invalid."""
        return rubric_named(self.rubric) if self.rubric else MED_BANANA

    @property
    def terms(self) -> Terms:
        """The terms of the recipe's calls: models (writer, editor, judges), limits, providers and consent."""
        models = dict.fromkeys((self.models.writer, self.models.editor, *self.models.judges))
        return Terms(
            tuple(models),
            self.limits,
            self.providers,
            self.data.consent,
            "data.consent",
            self.settings,
            self.engine,
        )

    def frozen_part(self) -> dict[str, JsonValue]:
        """Return, as JSON values, the settings that a resumed run must repeat, e.g. models, loop, seed and rubric."""
        sampling = self.terms.sampling()
        roles = {role: dict(table) for role, table in sorted(self.settings.items()) if table}
        return {
            "rubric": {**frozen(self.judged_by)},
            "sampling": sampling,
            "settings": cast(JsonValue, roles),
            "seed": self.seed,
            "models": {**self.models.model_dump(mode="json"), "judge": list(self.models.judges)},
            "loop": self.loop.model_dump(mode="json", exclude={"turns"} if self.loop.turns == 1 else None),
        }


def _check_roles(recipe: Recipe, path: Path | str) -> None:
    """Refuse settings of a role that its model's provider does not have. Raise InputError."""
    models = {
        "writer": (recipe.models.writer,),
        "editor": (recipe.models.editor,),
        "judge": recipe.models.judges,
    }
    for role, names in models.items():
        for name in names:
            try:
                recipe.terms.options(name, role)
            except InputError as error:
                raise InputError(f"{path}: {error}") from error


def _check_panel(recipe: Recipe, path: Path | str) -> None:
    """Raise InputError for a judge that is named several times and would give the same answer each time."""
    for judge, times in Counter(recipe.models.judges).items():
        fixed = judge.startswith("offline/") or recipe.terms.options(judge, "judge").get("temperature") == 0.0
        if times > 1 and fixed:
            raise InputError(
                f"{path}: models.judge: {judge} is named {times} times but answers the same each time: name it "
                "once, or add other judges"
            )


def load_recipe(path: Path) -> Recipe:
    """Read and validate a recipe file; its relative paths are relative to the file.

    Raises:
        InputError: one line that names the file and the field, and for an unknown key the nearest known one.
    """
    recipe = read_toml(path, Recipe, "recipe")
    check_provider_names(recipe.providers, recipe.terms.models, path)
    here = path.resolve().parent
    data = recipe.data.model_copy(
        update={
            "catalogue": here / recipe.data.catalogue,
            "finding_files": tuple(here / file for file in recipe.data.finding_files),
        }
    )
    providers = resolve_provider_paths(path, recipe.providers)
    rubric = str(here / recipe.rubric) if recipe.rubric.endswith(".toml") else recipe.rubric
    free = {"data": data, "providers": providers, "rubric": rubric}
    return checked(recipe.model_copy(update=free), path)


def checked(recipe: Recipe, name: Path | str = "recipe") -> Recipe:
    """Check a recipe's models and rubric, and return it with the rubric's policy and threshold where it sets none.

    `name` is its name in messages. Raise InputError if it is invalid.
    """
    _check_roles(recipe, name)
    _check_panel(recipe, name)
    judged = {"policy": recipe.judged_by.policy, "threshold": recipe.judged_by.threshold}
    unset = {key: value for key, value in judged.items() if key not in recipe.loop.model_fields_set}
    loop = recipe.loop.model_copy(update=unset)
    if loop.policy == "weighted" and not recipe.judged_by.weighted:
        raise InputError(
            f"{name}: loop.policy: 'weighted' needs weights, and {recipe.judged_by.name} has none"
        )
    return recipe.model_copy(update={"loop": loop})


@dataclass(frozen=True, slots=True)
class Method:
    """How a run edits and judges.

    Attributes:
        writer, editor, judges: the models; several judges form a panel.
        rubric: the criteria; `policy`, `threshold`: when an edit qualifies by them.
        max_rounds: maximum number of rounds of a task.
        seed: the run's seed.
        restore: "none", or "outside" to restore the original around each edit.
    """

    writer: Writer
    editor: Editor
    judges: tuple[Judge, ...]
    rubric: Rubric
    policy: str
    threshold: float
    max_rounds: int
    seed: int
    restore: str = NONE


def method_of(recipe: Recipe, setup: RunSetup, missing: list[str] | None = None) -> Method:
    """Load the models, rubric and policy that a recipe names.

    Args:
        recipe: the recipe.
        setup: setup of the run.
        missing: collects a line for each missing key instead of raising; such a model cannot be called.

    Raises:
        InputError: a model is unknown or cannot fill its role, or a key or extra is missing.
    """
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
        restore=recipe.loop.restore,
    )


def guarded(method: Method, setup: RunSetup) -> Method:
    """Wrap the models of a caller's method so that every image passes the run's consent check before it is sent."""
    judges = tuple(map(setup.guarded, method.judges))
    return replace(
        method, writer=setup.guarded(method.writer), editor=setup.guarded(method.editor), judges=judges
    )


def fingerprints(method: Method) -> dict[str, str]:
    """Return, by part ("writer", "judge 1", ...), a text that changes if the part's answers could change."""
    parts = {
        "writer": f"{method.writer.name}: {method.writer.fingerprint}",
        "editor": f"{method.editor.name}: {method.editor.fingerprint}",
        "rubric": " ".join(map(str, identity_of(method.rubric))),
    }
    for number, judge in enumerate(method.judges, start=1):
        parts[f"judge {number}"] = f"{judge.name}: {fingerprint_of(judge, method.rubric)}"
    return {**parts, **restore_identity(method.restore)}


def restore_identity(restore: str) -> dict[str, str]:
    """Return {"restore": version}, which identifies runs and requests with restoring; {} if it is off."""
    if restore == NONE:
        return {}
    from plantain.pixels.restore import VERSION  # heavy

    return {"restore": VERSION}
