"""Entry points: layouts, metrics, sources, rubrics and models."""

from __future__ import annotations

import ast
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import plantain
from reference_from_code.markdown import cell, code, table

GROUPS = {
    "sources": (
        "Sources",
        "`plantain ingest NAME` reads a published dataset as it was downloaded.",
        "write-a-source.md",
    ),
    "layouts": (
        "Layouts of a release",
        "`plantain export --layout NAME` writes the same edits in the form that their reader expects. "
        "`med-banana` always comes along.",
        "write-a-layout.md",
    ),
    "metrics": (
        "Metrics",
        "`plantain bench score` computes them; `plantain.metrics` has most of them as functions.",
        "write-a-metric.md",
    ),
    "rubrics": ("Rubrics", "Criteria of an edit.", "write-a-rubric.md"),
    "models": ("Providers", "The word before the slash in `provider/model`.", "write-a-judge.md"),
}
"""Group -> title, description, and the page on writing one."""


def registered(group: str) -> list[EntryPoint]:
    """Entry points of plantain itself, by name."""
    found = {
        one.name: one for one in entry_points(group=f"plantain.{group}") if one.value.startswith("plantain.")
    }
    return [found[name] for name in sorted(found)]


def installed_pages() -> dict[str, str]:
    """One page for each group."""
    return {f"{group}.md": _page(group) for group in GROUPS}


def _page(group: str) -> str:
    title, about, how = GROUPS[group]
    headings = ["name", "description", "where in the code"]
    rows = [
        [code(one.name), cell(_text(one)), code(one.value.replace(":", "."))] for one in registered(group)
    ]
    if group == "metrics":
        headings[2:2] = ["range", "better", "needs of a sample"]
        for row, one in zip(rows, registered(group), strict=True):
            row[1:2] = _of_metric(one)
    if group == "sources":
        headings[2:2] = ["`--set name=value`, the first is the default"]
        for row, one in zip(rows, registered(group), strict=True):
            row[2:2] = [_settings(one)]
    if group == "rubrics":
        headings[1] = "criteria"
        for row, one in zip(rows, registered(group), strict=True):
            row[1] = ", ".join(code(criterion.name) for criterion in one.load().criteria)
    return "\n".join(
        [
            f"# {title}\n",
            f"{about} Packages add their own by the entry point `plantain.{group}`: [how](../../how-to/{how}).\n",
            table(headings, rows),
        ]
    )


def _settings(one: EntryPoint) -> str:
    """Each choice of a kind of source with its values, the default first."""
    known = one.load().settings
    return "; ".join(
        f"{code(name)} " + ", ".join(dict.fromkeys((setting.default or "none", *setting.allowed)))
        for name, setting in known.items()
    )


def _of_metric(one: EntryPoint) -> list[str]:
    metric = one.load()
    low, high = ("" if bound is None else f"{bound:g}" for bound in (metric.low, metric.high))
    unit = f", {metric.unit}" if metric.unit else ""
    needs = ", ".join(map(code, metric.needs))
    return [
        cell(metric.label),
        _range(low, high) + unit,
        "higher" if metric.higher_is_better else "lower",
        needs,
    ]


def _range(low: str, high: str) -> str:
    if low and high:
        return f"{low} to {high}"
    return f"{low} or more" if low else f"{high} or less" if high else "any"


def _text(one: EntryPoint) -> str:
    """The first paragraph of the module's docstring, read without importing it: some need packages of an extra."""
    parts = one.value.partition(":")[0].split(".")[1:]
    file = Path(plantain.__file__).parent.joinpath(*parts)
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return doc.split("\n\n")[0]
