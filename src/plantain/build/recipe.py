"""The recipe: what a person asks for, validated field by field."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plantain.build.providers import NO_SETTINGS, ProviderSection
from plantain.journal import JsonValue
from plantain.models.registry import provider_names
from plantain.records import Direction, InputError


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ConsentGiven(_Section):
    """The owners' permission to send this catalogue's images to the recipe's hosted models, as the recipe states it."""

    by: Annotated[str, Field(min_length=3)]
    agreement: Annotated[str, Field(min_length=3)]


class Data(_Section):
    """Which images, findings and directions.

    `consent` is needed where an image that is credentialed, or of unknown licence, would leave this machine.
    `add_to` says what a finding may be added to: "normal" images only (the paper), or "any" image that is not
    labelled with it. `per_finding` caps the tasks of each finding and direction, ranked by a seeded hash.
    """

    catalogue: Path
    findings: tuple[str, ...] = ()
    directions: tuple[Literal[Direction.ADD, Direction.REMOVE], ...] = (Direction.ADD, Direction.REMOVE)
    per_finding: Annotated[int, Field(ge=1)] | None = None
    add_to: Literal["normal", "any"] = "normal"
    finding_files: tuple[Path, ...] = ()
    consent: ConsentGiven | None = None


class Models(_Section):
    """Names of the models, "provider/model". A list of judges is a panel and decides by majority."""

    writer: str = "offline/templates"
    editor: str = "offline/procedural"
    judge: str | Annotated[tuple[str, ...], Field(min_length=1)] = "offline/instruments"

    @property
    def judges(self) -> tuple[str, ...]:
        return (self.judge,) if isinstance(self.judge, str) else self.judge


class Loop(_Section):
    """How many rounds, and what qualifies an edit. `writer_sees_failed_edit` is off, as in the paper."""

    max_rounds: Annotated[int, Field(ge=1, le=20)] = 5
    policy: Literal["all-pass", "weighted"] = "all-pass"
    threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.7
    writer_sees_failed_edit: bool = False


class Limits(_Section):
    """What may be spent, by the run as a whole; free to change when it is resumed.

    Reaching `budget_usd`, `max_calls` or `max_hours` stops the run with exit code 3. `unknown_costs` says how calls
    whose cost never became known (killed or cut off half-way) count against the budget: at the most they can have cost
    ("reserve"), or, once the provider's bill has been looked at, not at all ("ignore"). `deadline_s` is for one call.
    `wave` is how many tasks are under way at once where calls wait for batch jobs.
    """

    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 8
    budget_usd: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    max_calls: Annotated[int, Field(ge=1)] | None = None
    max_hours: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    wave: Annotated[int, Field(ge=1, le=20_000)] = 1_000
    deadline_s: Annotated[float, Field(gt=0.0, le=86_400.0)] = 600.0
    unknown_costs: Literal["reserve", "ignore"] = "reserve"


class Recipe(_Section):
    """A build, as its TOML file states it."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[\w .-]+$")]
    seed: Annotated[int, Field(ge=0)] = 0
    data: Data
    models: Models = Models()
    loop: Loop = Loop()
    limits: Limits = Limits()
    providers: Mapping[str, ProviderSection] = Field(default_factory=dict)

    def provider(self, model: str) -> ProviderSection:
        """What the recipe says of the provider of "provider/model"; the defaults where it says nothing."""
        return self.providers.get(model.partition("/")[0], NO_SETTINGS)

    def frozen_part(self) -> dict[str, JsonValue]:
        """What may not change when the run is resumed: models, loop, seed, and how the models are sampled."""
        sampling: dict[str, JsonValue] = {
            name: said for name, section in sorted(self.providers.items()) if (said := section.frozen_part())
        }
        return {
            **({"sampling": sampling} if sampling else {}),
            "seed": self.seed,
            "models": {
                "writer": self.models.writer,
                "editor": self.models.editor,
                "judge": list(self.models.judges),
            },
            "loop": self.loop.model_dump(mode="json"),
        }


def load_recipe(path: Path) -> Recipe:
    """Reads and validates a recipe file; its relative paths are relative to the file.

    Raises:
        InputError: one line that names the file and the field, and for an unknown key the nearest known one.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such recipe") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not a readable TOML file: {error}") from error
    try:
        recipe = Recipe.model_validate(raw)
    except ValidationError as error:
        raise InputError(f"{path}: {_first_problem(error)}") from error
    here = path.resolve().parent
    data = recipe.data.model_copy(
        update={
            "catalogue": here / recipe.data.catalogue,
            "finding_files": tuple(here / file for file in recipe.data.finding_files),
        }
    )
    _check_provider_names(recipe, path)
    providers = {
        name: section.model_copy(update={"prompts": here / section.prompts}) if section.prompts else section
        for name, section in recipe.providers.items()
    }
    return recipe.model_copy(update={"data": data, "providers": providers})


def _check_provider_names(recipe: Recipe, path: Path) -> None:
    """Refuses a section of no provider: a misspelt one would leave its limits unsaid."""
    named = (recipe.models.writer, recipe.models.editor, *recipe.models.judges)
    known = {*provider_names(), *(name.partition("/")[0] for name in named)}
    for name in recipe.providers:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(sorted(known))}"
            raise InputError(f"{path}: providers.{name}: no such provider; {hint}")


def _section_at(where: list[str]) -> type[BaseModel]:
    """The section that a path of keys leads to; the names in `providers` and `prices` are the person's own."""
    section: type[BaseModel] = Recipe
    for part in where:
        if part in section.model_fields:
            for annotation in _classes(section.model_fields[part].annotation):
                section = annotation
    return section


def _classes(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _classes(argument)]


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = [str(part) for part in problem["loc"]]
    field = ".".join(where)
    if problem["type"] == "extra_forbidden":
        section = _section_at(where[:-1])
        nearest = difflib.get_close_matches(where[-1], section.model_fields, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(section.model_fields)}"
        return f"unknown key {field!r}; {hint}"
    more = len(error.errors()) - 1
    rest = f" (and {more} more)" if more else ""
    return f"{field}: {problem['msg'][0].lower()}{problem['msg'][1:]}{rest}"
