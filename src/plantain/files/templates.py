"""Templates that a stranger may have written: they fill in words, and can run, read or exhaust nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import cast

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from plantain.records import InputError

LONGEST_SOURCE = 256 * 1024
LONGEST_TEXT = 1 << 20
LONGEST_VALUE = 200_000
MOST_STEPS = 100_000
"""Rounds of all loops of one filling together."""

_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Import: "import",
    nodes.FromImport: "import",
    nodes.Extends: "extends",
    nodes.Block: "block",
    nodes.Macro: "macro",
    nodes.CallBlock: "call",
    nodes.FilterBlock: "filter",
    nodes.With: "with",
    nodes.AssignBlock: "set ... endset",
    nodes.ScopedEvalContextModifier: "autoescape",
}
_NO_FILTERS = frozenset(
    {
        "attr",
        "batch",
        "center",
        "format",
        "indent",
        "map",
        "pprint",
        "random",
        "slice",
        "urlize",
        "wordwrap",
        "xmlattr",
    }
)
_METHODS = frozenset(
    {"upper", "lower", "title", "capitalize", "strip", "lstrip", "rstrip", "startswith", "endswith", "split"}
    | {"splitlines", "items", "keys", "values", "get", "count", "index", "cycle"}
)
_OWNERS = (str, dict, list, tuple, jinja2.runtime.LoopContext)

FAULTS = (
    *(jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(RecursionError, MemoryError, SyntaxError),
)
"""What a template can raise when it is read or filled in."""

_steps: ContextVar[list[int]] = ContextVar("steps")


class StrangersTemplates(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with bounds: no macros or imports, few methods and filters, counted loops, short values.

    Args:
        sources: the templates by name, which may include each other and nothing else.
        finalize: what becomes of each value before it stands in the text.

    Raises:
        InputError: one of them cannot be read; the line names it and the line in it.
    """

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, sources: Mapping[str, str], finalize: Callable[[object], object]) -> None:
        super().__init__(
            loader=jinja2.DictLoader(sources),
            undefined=jinja2.StrictUndefined,
            finalize=finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
        )
        self.globals.clear()
        self.filters = {name: made for name, made in self.filters.items() if name not in _NO_FILTERS}
        self.filters |= {"replace": _replace, "each step": _each, "short value": _short}
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
        """The template with its values filled in.

        Raises:
            InputError: it asks for something that there is not or that it may not have.
        """
        token = _steps.set([MOST_STEPS])
        parts, length = [], 0
        try:
            for part in self.get_template(name).generate(values):
                length += len(part)
                if length > LONGEST_TEXT:
                    raise InputError(f"prompt {name}: makes more than {LONGEST_TEXT >> 20} MiB of text")
                parts.append(part)
        except FAULTS as error:
            raise InputError(f"prompt {name}: {_describe(error)}") from None
        finally:
            _steps.reset(token)
        return "".join(parts)

    def is_safe_callable(self, obj: object) -> bool:
        return getattr(obj, "__name__", "") in _METHODS and isinstance(
            getattr(obj, "__self__", None), _OWNERS
        )

    def call_binop(
        self, context: jinja2.runtime.Context, operator: str, left: object, right: object
    ) -> object:
        if operator == "**" or not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
            raise SecurityError(f"{operator!r} is for numbers, and powers are not computed")
        return super().call_binop(context, operator, left, right)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for kind, word in _REFUSED.items():
            found = tree.find(kind)
            if found is not None:
                raise jinja2.TemplateSyntaxError(f"{word!r} is not for prompts", found.lineno, name)
        for loop in tree.find_all(nodes.For):
            loop.iter = _through("each step", loop.iter)
        for named in tree.find_all(nodes.Assign):
            named.node = _through("short value", named.node)
        return tree


def _through(name: str, node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(
        cast(nodes.Expr, node), name, [], [], None, None, lineno=node.lineno, environment=node.environment
    )


def _each(values: object) -> Iterator[object]:
    left = _steps.get()
    for value in values if isinstance(values, (list, tuple, dict)) else _listed(values):
        left[0] -= 1
        if left[0] < 0:
            raise SecurityError(f"its loops run more than {MOST_STEPS} times")
        yield value


def _listed(values: object) -> Iterator[object]:
    try:
        return iter(values)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise SecurityError("a loop needs a list") from None


def _short(value: object) -> object:
    if isinstance(value, (str, list, tuple, dict)) and len(value) > LONGEST_VALUE:
        raise SecurityError(f"a value of more than {LONGEST_VALUE} characters")
    return value


def _replace(text: object, old: str, new: str, count: int = -1) -> str:
    """Jinja's `replace`, which could multiply a text without end."""
    value = str(text)
    if len(value) + (value.count(old) * len(new)) > LONGEST_VALUE:
        raise SecurityError(f"a value of more than {LONGEST_VALUE} characters")
    return value.replace(old, new, -1 if count is None else count)


def _describe(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
