"""Reader studies by simulation: type-1 error, power against `review plan`, coverage of strengths. About 15 minutes.

`--studies 200` for a look, `--only power` for a part. Targets: type-1 error 3 to 6.5 % from 5 readers and at most 7 %
with 3 or 4 (they are conservative by design: low is allowed), the power table within 3 points, coverage at least 93 %.
"""

from __future__ import annotations

import argparse
import sys

from plantain.metrics.statistics.reader_power import Components, power, stated
from simulated.reader_studies import (
    NATURES,
    coverage_of_strengths,
    false_alarms,
    false_alarms_pooled,
    found_share,
)

DESIGNS = [(3, 50), (3, 200), (4, 100), (5, 100), (5, 200), (8, 100)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--only", choices=("type-1", "power", "strengths"))
    args = parser.parse_args()
    studies, only = args.studies, args.only
    slack = 1.96 * (0.05 * 0.95 / studies) ** 0.5 if studies < 2000 else 0.0
    missed = []

    def held(what: str, value: float, low: float, high: float) -> None:
        good = low - slack <= value <= high + slack
        print(f"{what:<64} {100 * value:5.1f} %{'' if good else '   missed'}", flush=True)
        if not good:
            missed.append(what)

    for readers, cases in DESIGNS if only in (None, "type-1") else ():
        low, high = (0.03, 0.065) if readers >= 5 else (0.0, 0.07)
        for name, nature in NATURES.items():
            for kind in ("binary", "score"):
                found = false_alarms(readers, cases, nature, studies, kind=kind)
                held(f"type 1: {readers} x {cases}, {kind}, {name}", found, low, high)
    for readers, cases in [(5, 100), (5, 200), (8, 100)] if only in (None, "type-1") else ():
        pooled = false_alarms_pooled(readers, cases, NATURES["as usual"], studies)
        print(f"type 1 of pooled votes: {readers} x {cases:<33} {100 * pooled:12.1f} %")
    for parts in (stated(0.2275), Components(0.02, 0.02, 0.3)) if only in (None, "power") else ():
        for readers, cases in DESIGNS:
            for effect in (0.0, 0.1, 0.15):
                power_of = power(effect, readers, cases, parts)
                found = found_share(effect, readers, cases, parts, 4 * studies)  # 0.5 points
                held(
                    f"power: {readers} x {cases}, {effect:g}: stated {100 * power_of:.1f} %, found",
                    found, power_of - 0.03, power_of + 0.03,
                )  # fmt: skip
    for readers in (3, 5, 10) if only in (None, "strengths") else ():
        strengths, position = coverage_of_strengths(readers, 60, studies)
        held(f"coverage of strengths, {readers} readers", strengths, 0.93, 1.0)
        held(f"coverage of position bias, {readers} readers", position, 0.93, 1.0)
    print(f"{len(missed)} targets missed" if missed else "all targets met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
