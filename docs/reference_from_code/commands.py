"""A page for every command, from the typer applications themselves."""

from __future__ import annotations

from collections.abc import Iterator

from typer._click import Command, Context
from typer.core import TyperArgument, TyperGroup, TyperOption

from plantain.cli import ABOUT, COMMANDS, EXIT_CODES, JOBS, LazyGroup
from reference_from_code.markdown import cell, code, paragraphs, table

HIDDEN = {"--help"}
"""Every command has it."""


def commands() -> Iterator[tuple[tuple[str, ...], Command, Context]]:
    """Every command and group below `plantain`, with the words by which it is called."""
    top = LazyGroup("", ABOUT, COMMANDS)
    yield from _below(top, Context(top, info_name="plantain"), ())


def _below(
    group: TyperGroup, context: Context, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Command, Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = Context(command, info_name=name, parent=context)
        yield (*words, name), command, inner
        if isinstance(command, TyperGroup):
            yield from _below(command, inner, (*words, name))


def options(command: Command, context: Context) -> list[TyperOption]:
    """The options of a command, `--help` left out."""
    return [
        option
        for option in command.get_params(context)
        if isinstance(option, TyperOption) and not HIDDEN & set(option.opts) and not option.hidden
    ]


def command_pages() -> dict[str, str]:
    """`commands/NAME.md` for each command of the first level, with those below it."""
    text: dict[str, list[str]] = {}
    lines: dict[str, str] = {}
    for words, command, context in commands():
        text.setdefault(words[0], []).append(_described(words, command, context))
        if len(words) == 1:
            lines[words[0]] = _line(words[0])
    index = [
        "# Commands\n",
        f"{EXIT_CODES} More on them: [exit codes](../../exit-codes.md).\n",
        "Every command has `--help`. Most have `--json`: [JSON output](../../json.md).\n",
        *_by_job(lines),
        "```{toctree}\n:hidden:\n:glob:\n\n*\n```\n",
    ]
    return {
        "commands/index.md": "\n".join(index),
        **{f"commands/{name}.md": "\n".join(parts) for name, parts in text.items()},
    }


def _by_job(lines: dict[str, str]) -> Iterator[str]:
    for job, names in JOBS.items():
        yield f"## {job[:1].upper()}{job[1:]}\n"
        yield table(
            ["command", "description"],
            [[f"[`{name}`]({name}.md)", cell(lines[name])] for name in names.split()],
        )


def _line(name: str) -> str:
    return next(text for text in reversed(COMMANDS[name]) if " " in text)


def _described(words: tuple[str, ...], command: Command, context: Context) -> str:
    name = " ".join(("plantain", *words))
    parts = [f"{'#' * min(len(words), 3)} {name}\n"]
    prose, example = _split(command.help or "")
    prose_below, example_below = _split(command.epilog or "")
    parts += [paragraphs(text) + "\n" for text in (prose, prose_below) if text]
    if isinstance(command, TyperGroup):
        rows = [[code(inner), cell(text)] for inner, text in _inner(command, context)]
        return "\n".join(
            [*parts, *_own_use(name, example, command, context), table(["command", "description"], rows)]
        )
    usage = " ".join(piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]")
    parts.append(f"```text\n{name} {usage} [OPTIONS]\n```\n".replace("  ", " "))
    if example or example_below:
        parts.append(f"```sh\n{example or example_below}\n```\n")
    arguments = [param for param in command.get_params(context) if isinstance(param, TyperArgument)]
    if arguments:
        rows = [[code(one.display_name_raw), cell(one.help or "")] for one in arguments]
        parts.append(table(["argument", "meaning"], rows))
    parts += _option_table(command, context)
    return "\n".join(parts)


def _own_use(name: str, example: str, command: TyperGroup, context: Context) -> Iterator[str]:
    """Of a group that does something by itself: how it is called, and its options."""
    if command.invoke_without_command:
        yield f"```sh\n{example or name}\n```\n"
        yield from _option_table(command, context)


def _option_table(command: Command, context: Context) -> Iterator[str]:
    found = options(command, context)
    if found:
        command.get_help(context)  # names the values of options, as `--help` shows them
        records = [one.get_help_record(context) or ("", "") for one in found]
        rows = [[code(names).replace("|", "\\|"), cell(text)] for names, text in records]
        yield table(["option", "meaning"], rows)


def _inner(group: TyperGroup, context: Context) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield name, (command.help or "").split("\n\n")[0] if command else ""


def _split(text: str) -> tuple[str, str]:
    """A help text without its example, and the example."""
    parts = [part.removeprefix("\b\n") for part in text.split("\n\n")]
    examples = [
        " ".join(part.split()).removeprefix("Example: ") for part in parts if part.startswith("Example: ")
    ]
    return "\n\n".join(part for part in parts if not part.startswith("Example: ")), "\n".join(examples)
