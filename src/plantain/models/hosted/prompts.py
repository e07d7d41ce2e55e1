"""The prompt templates: found, fingerprinted, and filled so that text from data cannot become an instruction.

An image's id, file name, group and note are never used. A stranger's template runs in Jinja's sandbox, with a bound on
the work of a rendering.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from plantain.files.opening import MAX_TEXT_BYTES, open_folder, read_inside, replace_file
from plantain.findings import lines_on, shown_sides, sides_on, zones_on
from plantain.records import (
    Attempt,
    Direction,
    Finding,
    InputError,
    SourceImage,
)
from plantain.records.messages import suggest
from plantain.roles import DescribeRequest, EncodedImage, WriteRequest

OURS, PUBLISHED = "ours", "published"
BUILT_IN = Path(__file__).with_name("templates")
TEMPLATES = tuple(sorted(file.name.removesuffix(".md.j2") for file in BUILT_IN.glob("*.md.j2")))
SYSTEMS = {
    **dict.fromkeys(("judge_add", "judge_remove", "rubric"), "judge_system"),
    "describe": "describe_system",
}
"""Prompt -> template of its system message, where that is not `system`."""

_LONGEST = 4000
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+"
)
_LOOK_ALIKES = str.maketrans({"<": "‹", ">": "›", "{": "(", "}": ")", "`": "'"})


def as_data(value: object) -> object:
    """Convert a value to one line of safe text without control or invisible characters; numbers are unchanged.

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
        label: name and hash of its templates; it changes with their wording.
        system, text: the system message and the user's message.
    """

    label: str
    system: str
    text: str


class PromptLibrary:
    """The prompt templates of a run: plantain's, each replaced by the folder's template of the same name.

    Raises:
        InputError: the folder or a file in it cannot be used; the message names the file.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None:
            _refuse_unknown(folder)
        self._sources = {name: _read(name, folder) for name in TEMPLATES}
        self._templates = _compiled(tuple((f"{name}.md.j2", text) for name, text in self._sources.items()))

    def label(self, name: str, system: str = "") -> str:
        """Return a prompt's label, "NAME:" and 12 hex digits of its templates' hash; `system` is as in `render`."""
        parts = ("case", "requirements", "report", system or SYSTEMS.get(name, "system"))
        text = "\x1f".join(self._sources[part] for part in (name, *parts))
        return f"{name}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def render(self, name: str, values: Mapping[str, object], system: str = "") -> Prompt:
        """Fill values, made safe by `as_data`, into a template and return the prompt.

        Args:
            name: name of the template.
            values: values of its variables.
            system: template of the system message; "" for the prompt's default.

        Raises:
            InputError: a user's template uses an unknown variable.
        """
        text = self._templates.fill(f"{name}.md.j2", values)
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        message = self._templates.fill(f"{system or SYSTEMS.get(name, 'system')}.md.j2", {}).strip()
        return Prompt(self.label(name, system), message, text)


def prompts_folder(name: str) -> Path | None:
    """Return the folder of a set of prompts, "published" or a user's folder; None for the default, "ours".

    Raises:
        InputError: the folder does not exist.
    """
    if name == OURS:
        return None
    folder = BUILT_IN / PUBLISHED if name == PUBLISHED else Path(name)
    if folder.is_dir():
        return folder
    hint = suggest(name, (OURS, PUBLISHED), otherwise=f"name a folder of templates, {OURS} or {PUBLISHED}")
    raise InputError(f"--prompts {name}: no such folder; {hint}")


def write_prompts(folder: Path) -> list[Path]:
    """Write plantain's templates into a folder, for editing and for `--prompts`; return their paths.

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


LONGEST_SOURCE = 64 * 1024

MOST = 1_000_000
"""Characters of output and steps of loops of one rendering together; a variable counts for 64 times its length."""

_FILTERS = frozenset(
    {"capitalize", "d", "default", "first", "int", "join", "last", "length", "list", "lower", "round", "sort"}
    | {"title", "trim", "unique", "upper"}
)
_METHODS = frozenset(
    {"upper", "lower", "title", "capitalize", "strip", "lstrip", "rstrip", "startswith", "endswith", "split"}
    | {"splitlines", "items", "keys", "values", "get", "count", "index", "cycle"}
)
_OWNERS = (str, dict, list, tuple, jinja2.runtime.LoopContext, jinja2.runtime.Macro)

FAULTS = (
    *(jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(RecursionError, MemoryError, SyntaxError),
)
"""Errors of compiling or rendering a template."""

_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


class StrangersTemplates(ImmutableSandboxedEnvironment):
    """Render a user's templates safely: Jinja's sandbox with few filters, no globals, and limited work.

    Args:
        sources: the templates by name, which may only include each other.
        finalize: function applied to each value before it is written.

    Raises:
        InputError: a template cannot be compiled; the message names it and the line in it.
    """

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, sources: Mapping[str, str], finalize: Callable[[object], object]) -> None:
        super().__init__(
            loader=jinja2.DictLoader(sources),
            undefined=jinja2.StrictUndefined,
            finalize=lambda value: _spent(finalize(value)),
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
        )
        self.globals.clear()
        self.filters = {name: made for name, made in self.filters.items() if name in _FILTERS}
        self.filters |= {"each step": _each, "a variable": lambda value: _spent(value, 64)}
        for name, source in sources.items():
            if len(source) > LONGEST_SOURCE:
                raise InputError(f"prompt {name}: more than {LONGEST_SOURCE >> 10} KiB")
            try:
                self.get_template(name)
            except jinja2.TemplateSyntaxError as error:
                raise InputError(f"prompt {name}, line {error.lineno}: {error.message}") from None
            except FAULTS as error:
                raise InputError(f"prompt {name}: {_describe(error)}") from None

    def fill(self, name: str, values: Mapping[str, object]) -> str:
        """Return a template filled with values.

        Raises:
            InputError: it uses a missing or forbidden name, or does more work than `MOST` allows.
        """
        token = _left.set([MOST])
        try:
            return "".join(str(_spent(part)) for part in self.get_template(name).generate(values))
        except FAULTS as error:
            raise InputError(f"prompt {name}: {_describe(error)}") from None
        finally:
            _left.reset(token)

    def is_safe_callable(self, obj: object) -> bool:
        owner = getattr(obj, "__self__", obj)
        return isinstance(owner, _OWNERS) and (owner is obj or getattr(obj, "__name__", "") in _METHODS)

    def call_binop(
        self, context: jinja2.runtime.Context, operator: str, left: object, right: object
    ) -> object:
        if operator == "**" or not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
            raise SecurityError(f"{operator!r} is for numbers, and powers are not computed")
        return super().call_binop(context, operator, left, right)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            loop.iter = _through("each step", loop.iter)
        for named in tree.find_all(nodes.Assign):
            named.node = _through("a variable", named.node)
        return tree


def _through(name: str, node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(
        cast(nodes.Expr, node), name, [], [], None, None, lineno=node.lineno, environment=node.environment
    )


def _each(values: object) -> Iterator[object]:
    for value in values:  # type: ignore[attr-defined]
        _spent(None)
        yield value


def _spent(value: object, times: int = 1) -> object:
    """Count a value against the bound of the present rendering. Raises SecurityError when that is used up."""
    left = _left.get()
    if left is not None:
        left[0] -= 1 + times * len(value) if isinstance(value, (str, list, tuple, dict)) else 1
        if left[0] < 0:
            raise SecurityError(f"makes more than {MOST:,} characters and steps")
    return value


def _describe(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


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


MODALITIES = {
    "chest_xray": "frontal chest radiograph",
    "brain_mri": "slice of a brain MRI",
    "fundus": "colour fundus photograph",
    "unknown": "medical photograph or scan",
}

_FACTS = ("view", "projection", "position", "sequence", "contrast", "plane", "laterality")


def write_prompt(library: PromptLibrary, request: WriteRequest) -> Prompt:
    """Make the writer's prompt for a first instruction, or for refining the last one if there is a history."""
    values = case_of(request.finding, request.image, request.task.direction)
    if not request.history:
        return library.render("write_initial", values)
    values |= {
        "history": [_round(attempt) for attempt in request.history],
    }
    return library.render("refine", values)


def with_images(text: str, images: Mapping[str, Sequence[EncodedImage]]) -> list[str | EncodedImage]:
    """Split a prompt into texts and images: each marker, such as `<before>`, becomes the next image of that name.

    Values cannot contain markers: their angle brackets are replaced. Markers without an image are dropped.
    """
    left = {name: iter(found) for name, found in images.items()}
    parts: list[str | EncodedImage] = []
    for number, piece in enumerate(re.split(f"<({'|'.join(images)})>", text)):
        if number % 2:
            parts += [image for image in [next(left[piece], None)] if image is not None]
        elif piece.strip():
            parts.append(piece.strip())
    return parts


def describe_prompt(library: PromptLibrary, request: DescribeRequest) -> Prompt:
    """Make the prompt that requests a description of a real pair of images, before and after."""
    return library.render(
        "describe", {name: getattr(request, name) for name in ("organ", "task", "prompt", "modality")}
    )


def modality_of(name: str) -> str:
    return MODALITIES.get(name, name.replace("_", " "))


def case_of(finding: Finding, image: SourceImage, direction: Direction) -> dict[str, object]:
    facts = [{"what": name, "value": getattr(image, name)} for name in _FACTS]
    return {
        "adding": direction is Direction.ADD,
        "finding": finding,
        "modality": modality_of(image.modality),
        "facts": [fact for fact in facts if fact["value"] != "unknown"],
        "labels": ", ".join(image.labels) or "nothing",
        "sides": sides_on(finding, image),
        "shown": shown_sides(image),
        "zones": zones_on(finding, image),
        "signs": lines_on(finding.signs, finding.zones, image, None),
        "secondary_signs": lines_on(finding.secondary_signs, finding.zones, image, None),
    }


def _round(attempt: Attempt) -> dict[str, object]:
    outcome, verdict = attempt.edit_outcome, attempt.verdict
    failed = outcome is not None and not outcome.ok
    why = f"{outcome.kind.value.replace('_', ' ')}: {outcome.reason}".rstrip(": ") if outcome else ""
    facts = verdict.observations.facts if verdict else {}
    results = verdict.observations.criteria.items() if verdict else ()
    return {
        "round": attempt.round,
        "instruction": attempt.instruction,
        "outcome": why if failed else "",
        "results": [
            {
                "name": name,
                "passed": result.passed,
                "codes": ", ".join(result.codes),
                "evidence": f"{result.value:g}. {result.evidence}"
                if result.value is not None
                else result.evidence,
            }
            for name, result in results
        ],
        "judged": "has_disease" in facts,
        "has_disease": facts.get("has_disease", False),
        "other_disease": facts.get("other_disease", False),
        "reason": verdict.observations.reason if verdict else "",
    }
