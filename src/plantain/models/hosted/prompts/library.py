"""The prompt templates: found, fingerprinted, and rendered so that text from data cannot become an instruction."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from plantain.files.opening import MAX_TEXT_BYTES, open_folder, read_inside, replace_file
from plantain.files.templates import StrangersTemplates
from plantain.records import InputError
from plantain.records.messages import suggest

OURS, PUBLISHED = "ours", "published"
BUILT_IN = Path(__file__).with_name("templates")
TEMPLATES = tuple(sorted(file.name.removesuffix(".md.j2") for file in BUILT_IN.glob("*.md.j2")))
SYSTEMS = {
    **dict.fromkeys(("judge_add", "judge_remove", "rubric", "look", "blind"), "judge_system"),
    **dict.fromkeys(("describe", "procedures"), "describe_system"),
}
"""Prompt -> template of its system message, where that is not `system`."""

_LONGEST = 4000
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+"
)
_LOOK_ALIKES = str.maketrans({"<": "‹", ">": "›", "{": "(", "}": ")", "`": "'"})


def as_data(value: object) -> object:
    """Return a value as one line without control or invisible characters, marks or template syntax.

    Angle brackets become look-alikes, so that no value can close the data block or open another; braces become
    parentheses. Text beyond 4,000 characters is cut and marked.
    """
    if isinstance(value, (int, float)):
        return value
    text = _HIDDEN.sub(" ", str(value)).translate(_LOOK_ALIKES)
    text = re.sub(r" {2,}", " ", text).strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} (cut)"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One rendered prompt.

    Attributes:
        label: name and hash of its template, its parts and its system message: changes with their wording.
        system, text: the messages.
    """

    label: str
    system: str
    text: str


class PromptLibrary:
    """The templates of a run: ours, each replaced by the folder's template of the same name.

    Raises:
        InputError: the folder or a file of it cannot be used; names the file.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None:
            _refuse_unknown(folder)
        self._sources = {name: _read(name, folder) for name in TEMPLATES}
        self._templates = _compiled(tuple((f"{name}.md.j2", text) for name, text in self._sources.items()))

    def label(self, name: str, system: str = "") -> str:
        """Return a prompt's name and hash; `system` as in `render`."""
        parts = ("case", "requirements", "report", system or SYSTEMS.get(name, "system"))
        text = "\x1f".join(self._sources[part] for part in (name, *parts))
        return f"{name}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def render(self, name: str, values: Mapping[str, object], system: str = "") -> Prompt:
        """Return a prompt with its values filled in by `as_data`.

        Args:
            name: of the template.
            values: of its variables.
            system: template of the system message; "" for the one that belongs to the prompt.

        Raises:
            InputError: a user's template uses an unknown variable.
        """
        text = self._templates.fill(f"{name}.md.j2", values)
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        message = self._templates.fill(f"{system or SYSTEMS.get(name, 'system')}.md.j2", {}).strip()
        return Prompt(self.label(name, system), message, text)


def prompts_folder(name: str) -> Path | None:
    """Return the folder of a set of prompts: "ours" (None), "published" or a folder of templates.

    Raises:
        InputError: no such folder.
    """
    if name == OURS:
        return None
    folder = BUILT_IN / PUBLISHED if name == PUBLISHED else Path(name)
    if folder.is_dir():
        return folder
    hint = suggest(name, (OURS, PUBLISHED), otherwise=f"name a folder of templates, {OURS} or {PUBLISHED}")
    raise InputError(f"--prompts {name}: no such folder; {hint}")


def write_prompts(folder: Path) -> list[Path]:
    """Write our templates into a folder, for editing and for `--prompts`; return their paths.

    Raises:
        InputError: a file of that name exists.
    """
    library = PromptLibrary()
    paths = {folder / f"{name}.md.j2": text for name, text in library._sources.items()}
    if there := next((path for path in paths if os.path.lexists(path)), None):
        raise InputError(f"--to {folder}: {there.name} exists")
    open_folder(folder)
    for path, text in paths.items():
        replace_file(path, text.encode())
    return list(paths)


@lru_cache(maxsize=8)
def _compiled(sources: tuple[tuple[str, str], ...]) -> StrangersTemplates:
    """Compile once per process: it takes as long as a hundred calls."""
    return StrangersTemplates(dict(sources), as_data)


@cache
def _ours(file: str) -> str:
    return (BUILT_IN / file).read_text("utf-8")


def _read(name: str, folder: Path | None) -> str:
    file = f"{name}.md.j2"
    if folder is None or not os.path.lexists(folder / file):
        return _ours(file)
    try:
        return read_inside(folder, folder / file, MAX_TEXT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"prompt {folder / file}: cannot be read: {error}") from None


def _refuse_unknown(folder: Path) -> None:
    known = [f"{name}.md.j2" for name in TEMPLATES]
    if not folder.is_dir():
        raise InputError(f"prompts: {folder} is not a folder")
    for path in sorted(folder.glob("*.j2")):
        if path.name not in known:
            raise InputError(f"prompts: {path}: replaces nothing; known: {', '.join(known)}")
