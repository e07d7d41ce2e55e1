"""`plantain bench`: measuring editing models; one module per sub-command, imported when it is asked for."""

from __future__ import annotations

import difflib
import importlib

from plantain.records import InputError

COMMANDS = {
    "demo": "a small benchmark from real images, offline editors, a leaderboard",
    "check": "what is wrong with a benchmark, one line a problem",
    "describe": "organs, tasks, sizes of regions: what a benchmark consists of",
    "prepare": "a benchmark from raw pairs of images",
    "from-build": "a benchmark with exact regions from any build",
    "generate": "run editors over a benchmark, or take outputs in",
    "score": "metrics and judges over what was generated",
    "table": "the leaderboard: HTML, CSV, LaTeX, JSON",
    "rank": "how metrics agree with people",
}
"""Every sub-command and its line of help; `plantain.cli.bench.<name>` holds its typer application `app`."""


def overview() -> str:
    """The text of `plantain bench --help`."""
    width = max(map(len, COMMANDS))
    lines = [
        "Usage: plantain bench COMMAND [ARGS]...",
        "",
        "Measure models that edit medical images: data in, outputs, scores, tables.",
        "",
        "Commands (each has --help with an example):",
        *(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()),
    ]
    return "\n".join(lines)


def app(args: list[str], prog_name: str, standalone_mode: bool) -> object:
    """Runs one sub-command, in the way in which the command line runs any command."""
    if not args or args[0] in ("--help", "-h", "help"):
        print(overview())
        return 0
    name, rest = args[0], args[1:]
    if name not in COMMANDS:
        nearest = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else "; see plantain bench --help"
        raise InputError(f"bench: no command {name!r}{hint}")
    module = importlib.import_module(f"plantain.cli.bench.{name.replace('-', '_')}")
    return module.app(args=rest, prog_name=f"{prog_name} {name}", standalone_mode=standalone_mode)
