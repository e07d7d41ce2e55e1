"""Templates from strangers: Jinja's sandbox, with a bound on the work of a rendering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import cast

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from plantain.records import InputError

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
    """Jinja's sandbox with few filters and methods, no globals, and a bound on each rendering.

    Args:
        sources: the templates by name, which may include each other and nothing else.
        finalize: applied to each value before it is written.

    Raises:
        InputError: one of them cannot be compiled; the line names it and the line in it.
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
        """Render a template.

        Raises:
            InputError: it uses something that is missing or forbidden, or does more than `MOST` allows.
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
