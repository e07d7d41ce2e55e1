"""A study's results, as returned by `analyse`, as a page and as LaTeX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plantain.pages.publishing import html_target, page_environment, write_page

TEMPLATES = Path(__file__).parents[1] / "templates"


def write_results(found: dict[str, Any], path: Path) -> Path:
    """Write the page; return its path. Raise InputError if it cannot be written."""
    environment = page_environment(TEMPLATES, "")
    figures = {block["block"]: figure for block in found["blocks"] if (figure := _figure(block))}
    write_page(
        html_target(path), environment.get_template("results.html.j2").render(found=found, figures=figures)
    )
    return path


def _figure(block: dict[str, Any]) -> str:
    """Return means or strengths with their intervals, one row for each model, as SVG."""
    entries = block.get("models") or block.get("strengths") or block.get("by_model") or {}
    rows = [(name, one) for name, one in entries.items() if one["value"] is not None]
    if not rows:
        return ""
    from matplotlib.figure import Figure

    from plantain.pages.drawing import ACCENT, MUTED, RULE, percent_axis, row_axis, svg

    rows.sort(key=lambda row: row[1]["value"])

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        row_axis(axes, [name for name, _ in rows])
        if block["task"] in ("accept", "describe-ok", "real-or-edited", "real-or-edited-2afc"):
            percent_axis(axes, "x")
        elif block.get("strengths"):
            axes.axvline(0, color=RULE, lw=1)
            axes.set_xlabel("strength (log odds)")
        if block["by_model"]:
            axes.axvline(0.5, color=MUTED, lw=0.8, ls="--")
        for y, (_, one) in enumerate(rows):
            if one["low"] is not None:
                axes.plot([one["low"], one["high"]], [y, y], color=ACCENT, lw=2, solid_capstyle="round")
            axes.plot(one["value"], y, "o", color=ACCENT, ms=6)

    return svg(block["block"], 7.2, 0.9 + 0.42 * len(rows), draw)


def results_latex(found: dict[str, Any]) -> str:
    """Return a booktabs table for each block with models: value and 95 % interval."""
    parts = []
    for block in found["blocks"]:
        entries = block.get("models") or block.get("strengths") or block.get("by_model")
        if not entries:
            continue
        lines = [
            f"% {block['title']}: {block['readers']} readers, readers and cases random",
            r"\begin{tabular}{lrr}",
            r"\toprule",
            r"model & value & 95\,\% interval \\",
            r"\midrule",
        ]
        for name, one in entries.items():
            bounds = "--" if one["low"] is None else f"{one['low']:z.2f} to {one['high']:z.2f}"
            value = "--" if one["value"] is None else f"{one['value']:z.2f}"
            lines.append(rf"{_escaped(name)} & {value} & {bounds} \\")
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""]))
    return "\n".join(parts)


def _escaped(text: str) -> str:
    for character in "\\{}$&#_%~^":
        text = text.replace(
            character, {"\\": r"\textbackslash ", "~": r"\~{}", "^": r"\^{}"}.get(character, f"\\{character}")
        )
    return text
