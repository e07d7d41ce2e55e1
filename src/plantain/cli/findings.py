"""`plantain findings`: the findings that can be added and removed, as a table or one in full."""

from __future__ import annotations

from dataclasses import asdict, fields

import typer
from rich.table import Table

from plantain.cli.terminal.options import AsJson, OwnFindings
from plantain.cli.terminal.tables import TerminalConsole, print_json, print_table
from plantain.findings import Taxonomy, load_taxonomy
from plantain.records import Differential, Finding, InputError, Visibility
from plantain.records.messages import command_line, suggest


def findings(
    name: str = typer.Argument("", metavar="NAME", help="Print this finding in full."),
    modality: str = typer.Option("", help="Only this modality."),
    files: OwnFindings = None,
    as_json: AsJson = False,
) -> None:
    """List the findings that can be added and removed, their views, and their names in each source.

    Example: plantain findings "Pleural Effusion"
    """
    taxonomy = load_taxonomy(files or ())
    shown = taxonomy.of(modality) if modality else taxonomy.findings
    if name:
        shown = _named(taxonomy, name, (modality,) if modality else taxonomy.modalities)
    if as_json:
        print_json([asdict(finding) for finding in shown])
    elif name:
        for finding in shown:
            _print_one(finding)
    else:
        _print_table(taxonomy, shown)


def _named(taxonomy: Taxonomy, name: str, modalities: tuple[str, ...]) -> tuple[Finding, ...]:
    """Return every finding of that name or label; "normal" may match several modalities."""
    matches = tuple(match for m in modalities if (match := taxonomy.match_label(m, name)) is not None)
    if matches:
        return matches
    if len(modalities) == 1:
        return (taxonomy.get(modalities[0], name),)
    names = [finding.name for finding in taxonomy.findings if not finding.normal]
    raise InputError(f"unknown finding {name!r}; {suggest(name, names)}")


def shown_on(visibility: Visibility) -> str:
    """Return the views, sequences and planes that show a finding, without "unknown"."""
    names = ("views", "projections", "positions", "sequences", "planes")
    parts = (getattr(visibility, name) for name in names)
    conditions = (" ".join(value for value in part if value != "unknown") for part in parts)
    return "; ".join(part for part in conditions if part) or "any"


def _print_table(taxonomy: Taxonomy, shown: tuple[Finding, ...]) -> None:
    for modality in dict.fromkeys(finding.modality for finding in shown):
        title = f"{taxonomy.titles[modality]} ({modality})"
        table = Table(title=title)
        table.add_column("finding", no_wrap=True)
        for column in ("where", "shown on", "changes"):
            table.add_column(column)
        for finding in (f for f in shown if f.modality == modality):
            cells = (
                finding.name + (" (optional)" if finding.optional else ""),
                "; ".join(", ".join(part) for part in (finding.sides, finding.zones) if part),
                "" if finding.normal else shown_on(finding.visibility),
                "source for add" if finding.normal else f"{finding.polarity}, {finding.support}",
            )
            table.add_row(*cells)
        print_table(table)
    one = command_line("findings", "Pleural Effusion")
    print(f"One in full: {one}. Definitions follow cited sources; no clinician has reviewed them yet.")


def _print_one(finding: Finding) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(finding.name, f"{finding.title} ({finding.modality}{', optional' * finding.optional})")
    for field in fields(finding):
        value = getattr(finding, field.name)
        if value and field.name not in ("name", "title", "modality", "optional", "draw"):
            table.add_row(field.name.replace("_", " "), _written(value))
    TerminalConsole().print(table)


def _written(value: object) -> str:
    """Return a field's value as text: one line for each sign, zone or similar finding."""
    if isinstance(value, Visibility):
        return f"{shown_on(value)}{f' ({value.note})' if value.note else ''}"
    if isinstance(value, Differential):
        return f"{value.name}: {value.how}"
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_written(one)}" for name, one in value.items())
    if isinstance(value, tuple):
        return "\n".join(map(_written, value))
    return "yes" if value is True else str(value)
