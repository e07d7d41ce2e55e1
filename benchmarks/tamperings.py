"""How many tampered submissions `plantain bench rescore` names: 100 copies of a bundle, each tampered with in one way.

Every copy's checksums are made right again, so that nothing but the content gives it away. Run:

    plantain bench pack RUN --to BUNDLE && python benchmarks/tamperings.py BUNDLE BENCH
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from bench.submission.tampering import TAMPERINGS, reseal
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.submission.rescoring import rescore
from plantain.metrics.networks.available import find_networks
from plantain.records import InputError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--tamperings", type=int, default=100)
    asked = parser.parse_args()
    bench, networks = Benchmark.load(asked.bench), find_networks(set())
    honest = rescore(asked.bundle, bench, networks)
    print(f"the bundle as it is: {len(honest.problems)} problems")
    caught: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    said: dict[str, str] = {}
    for number in range(asked.tamperings):
        tamper = TAMPERINGS[number % len(TAMPERINGS)]
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "bundle"
            shutil.copytree(asked.bundle, copy)
            tamper(copy, random.Random(number))
            reseal(copy)
            try:
                problems = list(rescore(copy, bench, networks).problems)
            except InputError as error:
                problems = [str(error)]
        name = tamper.__name__
        tried[name] += 1
        caught[name] += bool(problems)
        said.setdefault(name, problems[0].replace(folder, "") if problems else "NOT NAMED")
    for name, n in tried.items():
        print(f"{name:20} {caught[name]:3} of {n:3}  {said[name][:90]}")
    print(f"{caught.total()} of {tried.total()} named")
    return 0 if not honest.problems and caught == tried else 1


if __name__ == "__main__":
    sys.exit(main())
