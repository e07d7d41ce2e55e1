"""Every artefact with every command that reads its kind, each in a process of its own under Debian's `strace`.

Counted, by what the kernel saw: files opened or changed outside the folders that a command was given, processes that
nobody expected, tracebacks, and the most memory that a process took.

    make hostile [ARGS='--every 10 --jobs 2']
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hostile import walking
from hostile.artefacts import Artefact, artefacts, make_templates
from plantain.cli import main as main_of_plantain

BEGIN, END = "/hostile-begin/", "/hostile-end/"
"""Paths that there are not: a look at one marks in the trace where a pair begins and ends."""

READABLE = (
    *(sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])),
    *(
        "/proc/",
        "/sys/",
        "/usr/",
        "/lib",
        "/etc/",
        "/dev/null",
        "/dev/urandom",
        "/dev/shm",
        "pipe:",
        "socket:",
    ),
    *("anon_inode:", "/memfd:", "/dev/pts", "/var/cache/fontconfig"),
)
"""What the interpreter, its packages and the machine's own libraries read; all else is the command's doing."""

WRITABLE = (
    f"{tempfile.gettempdir()}/plantain-",
    f"{tempfile.gettempdir()}/pymp-",
    "/dev/null",
    "/dev/shm",
    "/proc/self/",
)
EXPECTED = ("plantain.pixels.apart", "multiprocessing.forkserver", "multiprocessing.resource_tracker")
"""Programs that plantain starts: pictures of strangers are decoded apart, and drawn in worker processes."""

OPENED = re.compile(
    r'(?:open|openat|creat)\(.*?"(?P<asked>(?:[^"\\]|\\.)*)", (?P<flags>[A-Z_|0-9]+).* = \d+<(?P<real>.*)>$'
)
CHANGED = re.compile(
    r"(?:rename|unlink|mkdir|rmdir|symlink|link|truncate|chmod|fchmodat|chown|mknod)\w*\((?P<rest>.*)\) = 0$"
)
STARTED = re.compile(r'execve\("(?P<program>[^"]*)", (?P<words>\[.*?\]), .* = 0$')
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass
class Seen:
    """What the traces showed; lines name the pair."""

    pairs: int = 0
    opened: int = 0
    outside: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    expected: Counter[str] = field(default_factory=Counter)


def pairs() -> list[tuple[Artefact, int]]:
    """Every artefact with the number of each of its commands; not where what the person names is itself the link."""
    return [
        (one, number)
        for one in artefacts()
        for number, command in enumerate(one.commands)
        if not (one.name.startswith("r.toml is a link") and "{it}/r.toml" in command)
    ]


def work(templates: Path, home: Path, numbers: Sequence[int], told: Path) -> None:
    """Runs pairs one after the other, each in a forked child; writes what went wrong and its memory, one line each."""
    wanted = pairs()
    importlib.import_module("matplotlib.font_manager")  # lists the machine's fonts by a program, once
    with told.open("w", encoding="utf-8") as file:
        for number in numbers:
            artefact, which = wanted[number]
            here = home / str(number)
            wrong = here.with_suffix(".wrong")
            child = os.fork()
            if child == 0:
                walking.main = functools.partial(_marked, number)
                found = walking.walk(artefact, templates, here, slice(which, which + 1))
                wrong.write_text(json.dumps(found), encoding="utf-8")
                os._exit(0)
            _, status, usage = os.wait4(child, 0)
            said = json.loads(wrong.read_text()) if wrong.exists() else [f"died with status {status}"]
            file.write(json.dumps({"pair": number, "wrong": said, "mb": usage.ru_maxrss / 1024}) + "\n")
            file.flush()
            shutil.rmtree(here, ignore_errors=True)


def _marked(number: int, words: list[str]) -> int:
    """A command between its two marks in the trace."""
    os.access(f"{BEGIN}{number}", os.F_OK)
    try:
        return main_of_plantain(words)
    finally:
        os.access(f"{END}{number}", os.F_OK)


def read_trace(lines: Iterator[str], home: Path, seen: Seen) -> None:
    """Judges a trace; what happened before the first pair was the preparation."""
    name, inside = "", ""
    wanted = pairs()
    for line in lines:
        if BEGIN in line:
            number = int(re.findall(r"\d+", line.partition(BEGIN)[2])[0])
            artefact, which = wanted[number]
            name, inside = f"{artefact} <- {artefact.commands[which]}", f"{home}/{number}"
            seen.pairs += 1
        elif END in line:
            name = ""
        elif name:
            _judge(line.rstrip(), name, inside, seen)


def _judge(line: str, name: str, inside: str, seen: Seen) -> None:
    if opened := OPENED.search(line):
        seen.opened += 1
        real = opened["real"].removesuffix("(deleted)").rstrip()
        written = any(flag in opened["flags"] for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"))
        if not _allowed(real, inside, written=written):
            seen.outside.append(f"{name}: opened {real} ({opened['flags']})")
    elif changed := CHANGED.search(line):
        for path in QUOTED.findall(changed["rest"])[-1:]:
            if path.startswith("/") and not _allowed(path, inside, written=True):
                seen.outside.append(f"{name}: changed {path}")
    elif started := STARTED.search(line):
        known = next((word for word in EXPECTED if word in started["words"]), "")
        seen.expected[known] += bool(known)
        if not known:
            seen.started.append(f"{name}: started {started['program']} {started['words'][:200]}")


def _allowed(path: str, inside: str, *, written: bool) -> bool:
    """Below the artefact or the free folder that the command was told of, or what the machine itself needs.

    An import is made beside its folder, under a name of its own, and moved there whole, which syncs the folder above.
    """
    if below := re.match(rf"{re.escape(inside)}/\d+(/it\b|/new\b|/\.new\.importing\b|$)", path):
        return bool(below[1]) or not written
    compiled = "/__pycache__/" in path  # numba keeps its kernels there, once for a machine
    return compiled or path.startswith(WRITABLE) or (not written and path.startswith(READABLE))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only every so many-th pair")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--work", nargs=3, metavar=("TEMPLATES", "HOME", "PART"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    numbers = list(range(options.first, len(pairs()), options.every))
    if options.work:
        templates, home, part = map(Path, options.work)
        own = numbers[int(part.name) :: options.jobs]
        home.mkdir(exist_ok=True)
        work(templates, home, own, home / f"told-{part.name}")
        return 0
    if shutil.which("strace") is None:
        print("make hostile: strace is not installed", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="hostile-") as made:
        return _trace(Path(made).resolve(), options.first, options.every, options.jobs)


def _trace(home: Path, first: int, every: int, jobs: int) -> int:
    begun = time.monotonic()
    templates = make_templates(home / "templates")
    environment = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLCONFIGDIR": f"{tempfile.gettempdir()}/plantain-mpl",
    }
    again = [sys.executable, "-m", "hostile.trace", "--first", str(first), "--every", str(every)]
    again += ["--jobs", str(jobs), "--work"]
    calls = (
        "trace=open,openat,creat,execve,access,faccessat,faccessat2,rename,renameat,renameat2,unlink,unlinkat,"
        "mkdir,mkdirat,rmdir,symlink,symlinkat,link,linkat,truncate,chmod,fchmodat,chown,mknod,mknodat"
    )
    tracer = ["strace", "-f", "-y", "-qq", "-s", "400", "--seccomp-bpf", "-e", calls]
    workers = [
        subprocess.Popen(
            [*tracer, "-o", f"{home}/trace-{part}", *again, str(templates), str(home / "pairs"), str(part)],
            env=environment,
        )
        for part in range(jobs)
    ]
    failed = [worker.wait() for worker in workers]
    seen, wrong, most = Seen(), list[str](), (0.0, "")
    wanted = pairs()
    for part in range(jobs):
        with (home / f"trace-{part}").open(encoding="utf-8", errors="replace") as lines:
            read_trace(lines, home / "pairs", seen)
        for line in (home / "pairs" / f"told-{part}").read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            artefact, which = wanted[told["pair"]]
            wrong += told["wrong"]
            most = max(most, (told["mb"], f"{artefact} <- {artefact.commands[which]}"))
    for line in {
        line.partition(": opened ")[0]: line for line in (*seen.outside, *seen.started, *wrong)
    }.values():
        print(line if len(line) < 400 else f"{line[:200]} ... {line[-200:]}")
    print(
        f"{seen.pairs} pairs in {time.monotonic() - begun:.0f} s, {seen.opened} files opened: "
        f"{len(seen.outside)} opened or changed outside, {len(seen.started)} unexpected processes "
        f"({seen.expected.total()} of our own), {len(wrong)} tracebacks or other faults; "
        f"at most {most[0]:.0f} MB ({most[1]})"
    )
    return int(bool(seen.outside or seen.started or wrong or any(failed) or not seen.pairs))


if __name__ == "__main__":
    sys.exit(main())
