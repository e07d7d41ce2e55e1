"""The recipe: what a person asks for, validated field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from plantain.journal import JsonValue
from plantain.records import Direction, InputError, Rubric
from plantain.rubrics import MED_BANANA, frozen, rubric_named
from plantain.runs.settings.engine import HERE, EngineSection
from plantain.runs.settings.providers import ProviderSection
from plantain.runs.settings.reading import check_provider_names, read_toml
from plantain.runs.settings.roles import Role, RoleSection
from plantain.runs.settings.terms import Limits, Permissions, Section, Terms


class Data(Section):
    """Which images, findings and directions.

    `catalogue` is the folder that `ingest` made. `findings` are the names of those to add or remove; without them,
    every finding of the images' modalities. `directions`: add findings, remove them, or both. `finding_files` bring
    findings of your own. `consent` is needed where an image that is credentialed, or of unknown licence, would leave
    this machine. `add_to` says what a finding may be added to: "normal" images only (the paper), or "any" image that is
    not labelled with it. `per_finding` caps the tasks of each finding and direction; each draws its own images, by
    a seeded hash.
    `controls` is how many images of each modality also pass through the editor with nothing to change. `check_text`:
    where text can be read (extra `ocr`), an edit that moves a marker or draws text does not qualify; about a second of
    processor each.
    """

    catalogue: Path
    findings: tuple[str, ...] = ()
    directions: tuple[Literal[Direction.ADD, Direction.REMOVE], ...] = (Direction.ADD, Direction.REMOVE)
    per_finding: Annotated[int, Field(ge=1)] | None = None
    controls: Annotated[int, Field(ge=0)] = 0
    add_to: Literal["normal", "any"] = "normal"
    finding_files: tuple[Path, ...] = ()
    check_text: bool = True
    consent: Permissions = None


class Models(Section):
    """Names of the models, "provider/model".

    The `writer` writes the instructions and refines them. The `editor` makes the edits. The `judge` answers the
    rubric's questions about each edit; a list is a panel, which decides by majority, and a judge that stands there k
    times is asked for k draws.
    """

    writer: str = "offline/templates"
    editor: str = "offline/procedural"
    judge: str | Annotated[tuple[str, ...], Field(min_length=1)] = "offline/instruments"

    @property
    def judges(self) -> tuple[str, ...]:
        return (self.judge,) if isinstance(self.judge, str) else self.judge


class Loop(Section):
    """How many rounds, and what qualifies an edit.

    A task has `max_rounds` attempts at most, the first one included. Under `policy` "all-pass" every criterion must
    pass; under "weighted" the weighted score must reach `threshold`. With `writer_sees_failed_edit` the writer that
    refines an instruction is shown the failed edit, too; in the paper it is not.

    `restore`: "outside" restores the original around the edit before the answer is judged; the answer as it came is
    kept too. About one second of processor time per image, no call.
    """

    max_rounds: Annotated[int, Field(ge=1, le=20)] = 5
    policy: Literal["all-pass", "weighted"] = "all-pass"
    threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.7
    writer_sees_failed_edit: bool = False
    restore: Literal["none", "outside"] = "none"

    def frozen_part(self) -> dict[str, JsonValue]:
        """What a run freezes of it; what came later counts only where it is on, so that older runs go on."""
        settings: dict[str, JsonValue] = self.model_dump(mode="json")
        if self.restore == "none":
            del settings["restore"]
        return settings


class Recipe(Section):
    """A build, as its TOML file states it.

    `name` stands in pages and releases. `seed` decides everything that is drawn: with the same, a recipe plans the same
    tasks. `rubric` is what edits are judged by: a name, or a TOML file of one's own; without it, Med-Banana's. The
    rubric's policy and threshold hold where `loop` says none.

    Example:
        >>> Recipe.load("pilot.toml").data.findings
        ('AMD', 'Cataract')
        >>> Recipe.model_validate({"name": "own", "data": {"catalogue": "catalogue"}}).loop.max_rounds
        5
    """

    name: Annotated[str, Field(min_length=1, pattern=r"^[\w .-]+$")]
    seed: Annotated[int, Field(ge=0)] = 0
    data: Data
    models: Models = Models()
    rubric: str = ""
    loop: Loop = Loop()
    limits: Limits = Limits()
    providers: Mapping[str, ProviderSection] = Field(default_factory=dict)
    settings: Mapping[Role, RoleSection] = Field(default_factory=dict)
    engine: EngineSection = HERE

    @classmethod
    def load(cls, path: Path | str) -> Recipe:
        """Reads and validates a recipe file, as `load_recipe`."""
        return load_recipe(Path(path))

    @property
    def judged_by(self) -> Rubric:
        """The rubric. Raises InputError where there is none of that name, or its file is wrong."""
        return rubric_named(self.rubric) if self.rubric else MED_BANANA

    @property
    def terms(self) -> Terms:
        """The terms under which it calls its models, in the order writer, editor, judges."""
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
        """What may not change when the run is resumed: models, loop, seed, and how the models are sampled."""
        sampling = self.terms.sampling()
        roles: dict[str, JsonValue] = {
            role: dict(settings)
            for role, section in sorted(self.settings.items())
            if (settings := section.stated())
        }
        own: JsonValue = {**frozen(self.judged_by)}
        return {
            **({"rubric": own} if self.judged_by != MED_BANANA else {}),
            **({"sampling": sampling} if sampling else {}),
            **({"settings": roles} if roles else {}),
            "seed": self.seed,
            "models": {
                "writer": self.models.writer,
                "editor": self.models.editor,
                "judge": list(self.models.judges),
            },
            "loop": self.loop.frozen_part(),
        }


def _check_panel(recipe: Recipe, path: Path) -> None:
    """Refuses a judge that is named again and would say the same again. Raises InputError."""
    for judge, times in Counter(recipe.models.judges).items():
        sampled = recipe.terms.options(judge, "judge").temperature != 0.0
        if times > 1 and (judge.startswith("offline/") or not sampled):
            why = (
                "answers the same each time" if judge.startswith("offline/") else "is asked at temperature 0"
            )
            raise InputError(
                f"{path}: models.judge: {judge} stands {times} times and {why}, which is one vote, not a panel: name "
                "it once, or add other judges"
            )


def load_recipe(path: Path) -> Recipe:
    """Reads and validates a recipe file; its relative paths are relative to the file.

    Raises:
        InputError: one line that names the file and the field, and for an unknown key the nearest known one.
    """
    recipe = read_toml(path, Recipe, "recipe")
    check_provider_names(recipe.providers, recipe.terms.models, path)
    _check_panel(recipe, path)
    here = path.resolve().parent
    data = recipe.data.model_copy(
        update={
            "catalogue": here / recipe.data.catalogue,
            "finding_files": tuple(here / file for file in recipe.data.finding_files),
        }
    )
    providers = {name: section.beside(here) for name, section in recipe.providers.items()}
    rubric = str(here / recipe.rubric) if recipe.rubric.endswith(".toml") else recipe.rubric
    free = {"data": data, "providers": providers, "limits": recipe.limits.beside(here), "rubric": rubric}
    recipe = recipe.model_copy(update=free)
    judged = {"policy": recipe.judged_by.policy, "threshold": recipe.judged_by.threshold}
    unsaid = {name: value for name, value in judged.items() if name not in recipe.loop.model_fields_set}
    return recipe.model_copy(update={"loop": recipe.loop.model_copy(update=unsaid)})
