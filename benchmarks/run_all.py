"""Run every benchmark of this folder, each as its own process; the end lists which met their targets."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ARGUMENTS = {"instrument_card.py": ["package"]}


def main() -> int:
    here = Path(__file__).parent
    verdicts = []
    for script in sorted(here.glob("*.py")):
        if script.name == Path(__file__).name:
            continue
        print(f"\n=== {script.name}", flush=True)
        started = time.monotonic()
        code = subprocess.run(
            [sys.executable, str(script), *ARGUMENTS.get(script.name, [])], cwd=here, check=False
        ).returncode
        verdicts.append((script.name, code, time.monotonic() - started))
    print()
    for name, code, seconds in verdicts:
        print(f"{name:<28} {'targets met' if code == 0 else f'exit {code}':<14} {seconds:6.0f} s")
    return 0 if all(code == 0 for _, code, _ in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
