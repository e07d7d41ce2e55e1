"""The prompt files: found, fingerprinted and rendered so that text from data cannot become an instruction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from plantain.files.templates import StrangersTemplates
from plantain.records import InputError

BUILT_IN = Path(__file__).with_name("templates")
ASKED = (
    "write_initial",
    "refine",
    "judge_add",
    "judge_remove",
    "edit",
    "edit_by_example",
    "again",
    "scale",
    "scale_system",
    "describe",
    "describe_system",
    "procedures",
)
"""The prompts that are sent, each with the system's words or, of a scale, its own before it; the others are parts."""

PARTS = ("system", "case", "requirements", "report")

_VERSION = re.compile(r"\A\{#-? *version: *(\d+)\b")
_LONGEST = 4000
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+"
)


def as_data(value: object) -> object:
    """A value as it may stand in a prompt: on one line, without control or invisible characters, marks or templates.

    Angle brackets become look-alikes, so that no value can close the data block or open another; braces become
    brackets. Longer than 4,000 characters is cut, and says so.
    """
    if isinstance(value, (int, float)):
        return value
    text = _HIDDEN.sub(" ", str(value)).translate(_LOOK_ALIKES)
    text = re.sub(r" {2,}", " ", text).strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} (cut)"


_LOOK_ALIKES = str.maketrans({"<": "‹", ">": "›", "{": "(", "}": ")", "`": "'"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request in words.

    Attributes:
        name, version: which prompt this is, from its file's first line.
        sha256: of its file and of every part that any prompt includes: changes whenever the wording does.
        system, text: the words themselves.
    """

    name: str
    version: int
    sha256: str
    system: str
    text: str

    @property
    def label(self) -> str:
        """Name, version and the beginning of the hash, as it is recorded with each call."""
        return f"{self.name}@{self.version}:{self.sha256[:12]}"


class PromptLibrary:
    """The prompt files of a run: ours, or a folder's where it has one of the same name.

    Args:
        folder: holds templates that replace ours, e.g. "judge_add.md.j2"; None for ours.

    Raises:
        InputError: the folder or a file cannot be used; the line names it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._sources = {name: _read(name, folder) for name in (*ASKED, *PARTS)}
        if folder is not None:
            _refuse_strangers(folder)
        self._versions = {name: _version(name, text) for name, text in self._sources.items()}
        sources = {f"{name}.md.j2": text for name, text in self._sources.items()}
        self._templates = StrangersTemplates(sources, as_data)

    def sha256(self, name: str) -> str:
        """Hash of a prompt's wording, shared parts included."""
        texts = (self._sources[name], *(self._sources[part] for part in PARTS))
        return hashlib.sha256("\x1f".join(texts).encode()).hexdigest()

    @cached_property
    def _system(self) -> str:
        return self._templates.fill("system.md.j2", {}).strip()

    def label(self, name: str) -> str:
        """The prompt's name, version and hash, without rendering it."""
        return f"{name}@{self._versions[name]}:{self.sha256(name)[:12]}"

    def render(self, name: str, values: Mapping[str, object]) -> Prompt:
        """The prompt with its values filled in, each made harmless by `as_data`.

        Raises:
            InputError: an edited template asks for something that there is not.
        """
        text = self._templates.fill(f"{name}.md.j2", values)
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        return Prompt(name, self._versions[name], self.sha256(name), self._system, text)


def _read(name: str, folder: Path | None) -> str:
    path = BUILT_IN / f"{name}.md.j2"
    if folder is not None and (folder / path.name).is_file():
        path = folder / path.name
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"prompt {path}: cannot be read: {error}") from None


def _refuse_strangers(folder: Path) -> None:
    known = [f"{name}.md.j2" for name in (*ASKED, *PARTS)]
    if not folder.is_dir():
        raise InputError(f"prompts: {folder} is no folder")
    for path in sorted(folder.glob("*.j2")):
        if path.name not in known:
            raise InputError(f"prompts: {path}: replaces nothing; known: {', '.join(known)}")


def _version(name: str, text: str) -> int:
    match = _VERSION.match(text)
    if match is None:
        raise InputError(f"prompt {name}.md.j2: must begin with {{#- version: N. ... -#}}")
    return int(match.group(1))
