"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from plantain.records import InputError
from plantain.records.messages import suggest

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]
EngineKind = Annotated[
    str,
    typer.Option(
        "--engine", metavar="KIND", help="Where edits and metrics run: local or ray; overrides [engine]."
    ),
]
ModelChange = Annotated[
    bool, typer.Option("--accept-model-change", help="Continue although a provider serves another model.")
]
OwnFindings = Annotated[
    list[Path] | None,
    typer.Option("--findings", metavar="FILE", help="Your own findings in TOML; repeatable."),
]
SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", metavar="FILE", help="TOML with [limits], [providers.NAME], [consent], [engine]."
    ),
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of the run; it may still be building.")
]
RecipeArgument = Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe in TOML.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any free one.")]
Originals = Annotated[
    Path | None,
    typer.Option(
        "--originals", metavar="DIR", help="Run or catalogue with the originals; default: the release."
    ),
]
BASE_MODEL = "InstructPix2Pix: diffusers/FOLDER or diffusers/HUB-ID."
StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of the study.")]
BenchArgument = Annotated[
    Path, typer.Argument(metavar="BENCH", help="Folder of the benchmark, or its metadata file.")
]
BenchRunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run of `plantain bench generate`.")]
BenchPath = Annotated[
    Path | None,
    typer.Option("--bench", metavar="PATH", help="The benchmark; default: the path recorded in the run."),
]
ScoringJudge = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="NAME",
        help="The judge whose scores are used; default: the one given most information.",
    ),
]
PairColumns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="ROLE=NAME", help="A column of a table of pairs; repeatable."),
]
PairConstants = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="ROLE=VALUE", help="One value for all pairs; repeatable."),
]


def parse_settings(words: Iterable[str], option: str = "--set") -> dict[str, str]:
    """Parse an option's NAME=VALUE words. Raise InputError for a word without "=", or a name given twice."""
    settings: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} {word!r}: write NAME=VALUE")
        if name.strip() in settings:
            raise InputError(f"{option} {name.strip()}: given twice")
        settings[name.strip()] = value.strip()
    return settings


def chosen_words(option: str, given: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the words given, each once. Raise InputError with the nearest allowed word for another."""
    words = tuple(dict.fromkeys(word for raw in given if (word := raw.strip())))
    known = [str(word) for word in allowed]
    for word in words:
        if word not in known:
            raise InputError(f"{option} {word!r}: {suggest(word, known)}")
    return words
