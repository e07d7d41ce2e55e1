"""The recipe: what a person asks for, validated field by field."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plantain.journal import JsonValue
from plantain.records import Direction, InputError


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(_Section):
    """Which images, findings and directions.

    `add_to` says what a finding may be added to: "normal" images only (the paper), or "any" image that is not
    labelled with it. `per_finding` caps the tasks of each finding and direction, ranked by a seeded hash.
    """

    catalogue: Path
    findings: tuple[str, ...] = ()
    directions: tuple[Direction, ...] = (Direction.ADD, Direction.REMOVE)
    per_finding: Annotated[int, Field(ge=1)] | None = None
    add_to: Literal["normal", "any"] = "normal"
    finding_files: tuple[Path, ...] = ()


class Models(_Section):
    """Names of the models, "provider/model". A list of judges is a panel and decides by majority."""

    writer: str = "offline/templates"
    editor: str = "offline/procedural"
    judge: str | tuple[str, ...] = "offline/instruments"

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
    """What may be spent; free to change when a run is resumed."""

    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 8


class Recipe(_Section):
    """A build, as its TOML file states it."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[\w .-]+$")]
    seed: Annotated[int, Field(ge=0)] = 0
    data: Data
    models: Models = Models()
    loop: Loop = Loop()
    limits: Limits = Limits()

    def frozen_part(self) -> dict[str, JsonValue]:
        """What may not change when the run is resumed: models, loop and seed."""
        return {
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
    return recipe.model_copy(update={"data": data})


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = [str(part) for part in problem["loc"]]
    field = ".".join(where)
    if problem["type"] == "extra_forbidden":
        section: type[BaseModel] = Recipe
        for part in where[:-1]:
            annotation = section.model_fields[part].annotation
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                section = annotation
        nearest = difflib.get_close_matches(where[-1], section.model_fields, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(section.model_fields)}"
        return f"unknown key {field!r}; {hint}"
    more = len(error.errors()) - 1
    rest = f" (and {more} more)" if more else ""
    return f"{field}: {problem['msg'][0].lower()}{problem['msg'][1:]}{rest}"
