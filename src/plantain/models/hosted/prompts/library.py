"""The prompt files: found, fingerprinted and rendered so that text from data cannot become an instruction."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from plantain.files.opening import MAX_TEXT_BYTES, read_inside
from plantain.files.templates import StrangersTemplates
from plantain.files.writing import replace_file
from plantain.records import InputError
from plantain.records.suggestions import suggest

BUILT_IN = Path(__file__).with_name("templates")
ASKED = (
    "write_initial",
    "refine",
    "judge_add",
    "judge_remove",
    "rubric",
    "look",
    "blind",
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

SETS: Mapping[str, Path | None] = {"ours": None, "published": BUILT_IN.with_name("published")}
"""Sets of prompts that `--prompts` knows by name: ours, and the questions of Med-Banana-50K in our words."""

LATEST = 2
"""The newest edition of our prompts. Edition 1 lies in the folder itself, what a later one changed or added in a folder
named by its number; a run goes on under the edition that it was begun with."""

ADDED = {"judge_system": 2}
"""Prompts that an edition added, by its number."""

SYSTEMS = dict.fromkeys(("judge_add", "judge_remove", "rubric", "look", "blind"), "judge_system")
"""Which prompt's words stand before these requests instead of `system`, where the edition has it."""

_VERSION = re.compile(r"\A\{#-? *version: *(\d+)\b")
_PROMPTS = re.compile(r"\bprompts=(\S+)")
_LABEL = re.compile(r"(\w+)@\d+:[0-9a-f]{12}")
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
        edition: of ours; 0 for the latest.

    Raises:
        InputError: the folder or a file cannot be used; the line names it.
    """

    def __init__(self, folder: Path | None = None, edition: int = 0) -> None:
        edition = edition or LATEST
        names = (*ASKED, *PARTS, *(name for name, since in ADDED.items() if since <= edition))
        self._sources = {name: _read(name, folder, edition) for name in names}
        if folder is not None:
            _refuse_strangers(folder)
        self._versions = {name: _version(name, text, folder) for name, text in self._sources.items()}
        self._templates = _compiled(tuple((f"{name}.md.j2", text) for name, text in self._sources.items()))

    def sha256(self, name: str) -> str:
        """Hash of a prompt's wording, shared parts included."""
        before = SYSTEMS.get(name, "")
        own = (self._sources[before],) if before in self._sources else ()
        texts = (self._sources[name], *(self._sources[part] for part in PARTS), *own)
        return hashlib.sha256("\x1f".join(texts).encode()).hexdigest()

    def _system(self, name: str) -> str:
        """What stands before a request: the edition's own words for its kind, or those for all."""
        before = SYSTEMS.get(name, "")
        return self._templates.fill(f"{before if before in self._sources else 'system'}.md.j2", {}).strip()

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
        return Prompt(name, self._versions[name], self.sha256(name), self._system(name), text)


def prompt_set(name: str) -> Path | None:
    """Return the folder of a set of prompts: "ours" (None), "published" or a folder of templates.

    Raises:
        InputError: no such folder.
    """
    if name in SETS:
        return SETS[name]
    if Path(name).is_dir():
        return Path(name)
    hint = suggest(name, SETS, otherwise=f"name a folder of templates, or {', '.join(SETS)}")
    raise InputError(f"--prompts {name}: no such folder; {hint}")


def write_prompts(folder: Path) -> list[Path]:
    """Write our templates into a folder, to be edited and given to `--prompts`; return their paths.

    Raises:
        InputError: a file of that name is there already.
    """
    library = PromptLibrary()
    paths = {folder / f"{name}.md.j2": text for name, text in library._sources.items()}
    if there := next((path for path in paths if os.path.lexists(path)), None):
        raise InputError(f"--to {folder}: {there.name} is there already")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in paths.items():
        replace_file(path, text.encode())
    return list(paths)


@lru_cache(maxsize=8)
def _compiled(sources: tuple[tuple[str, str], ...]) -> StrangersTemplates:
    """Templates of one wording, once a process: reading them takes as long as a hundred calls."""
    return StrangersTemplates(dict(sources), as_data)


def edition_of(fingerprint: str, folder: Path | None) -> int:
    """The edition of our prompts that a model's recorded fingerprint names; 0, the latest, where it names none of them.

    Args:
        fingerprint: holds labels, "name@version:hash".
        folder: of templates that replace ours, as today.
    """
    prompts = _PROMPTS.search(fingerprint)  # a rubric of one's own has a label beside them
    labels = {found.group(1): found.group() for found in _LABEL.finditer(prompts.group(1) if prompts else "")}
    for edition in range(LATEST, 0, -1):
        library = PromptLibrary(folder, edition)
        if labels and all(name in ASKED and library.label(name) == label for name, label in labels.items()):
            return edition
    return 0


def _read(name: str, folder: Path | None, edition: int) -> str:
    """A prompt's source: the folder's, else ours as of an edition."""
    file = f"{name}.md.j2"
    if folder is None or not os.path.lexists(path := folder / file):
        return _ours(file, edition)
    try:
        return read_inside(folder, path, MAX_TEXT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"prompt {path}: cannot be read: {error}") from None


@cache
def _ours(file: str, edition: int) -> str:
    places = (BUILT_IN / str(number) for number in range(edition, 1, -1))
    return next((place / file for place in places if (place / file).is_file()), BUILT_IN / file).read_text(
        "utf-8"
    )


def _refuse_strangers(folder: Path) -> None:
    known = [f"{name}.md.j2" for name in (*ASKED, *PARTS, *ADDED)]
    if not folder.is_dir():
        raise InputError(f"prompts: {folder} is not a folder")
    for path in sorted(folder.glob("*.j2")):
        if path.name not in known:
            raise InputError(f"prompts: {path}: replaces nothing; known: {', '.join(known)}")


def _version(name: str, text: str, folder: Path | None) -> int:
    match = _VERSION.match(text)
    if match is None:
        path = (folder or BUILT_IN) / f"{name}.md.j2"
        raise InputError(f"prompt {path}: must begin with {{#- version: N. ... -#}}")
    return int(match.group(1))
