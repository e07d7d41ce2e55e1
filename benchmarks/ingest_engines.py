"""How fast pictures come in by `plantain ingest` in this machine's processes, and on one and two workers of Ray.

Pictures are 1024x1024 JPEG files (pieces of a real retina), each with its own hash; text is not looked for. All work
stays on one machine, so Ray can gain nothing here: shown is what its way costs. Each figure is of a whole command, the
start of the cluster in it. The catalogues must hold the same pictures.

Run: python benchmarks/ingest_engines.py [--images 1000]
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path

from simulated.releases import PATTERNS, drawn, numbered, plantain

ENGINE = '[engine]\nkind = "ray"\naddress = "local"\nworkers = {}\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=1_000)
    args = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory(prefix="plantain-") as name:
        scratch = Path(name)
        (scratch / "scans" / "normal").mkdir(parents=True)
        pictures = drawn(1024)
        for number in range(args.images):
            data = numbered(pictures[number % PATTERNS][0], number)
            (scratch / "scans" / "normal" / f"{number:06}.jpg").write_bytes(data)
        found: dict[str, set[str]] = {}
        for way in ("here", "ray, 1 worker", "ray, 2 workers"):
            out = scratch / way.replace(" ", "-")
            words = ["ingest", "folder", str(scratch / "scans"), "--modality", "fundus", "--licence", "open"]
            words += ["--skip-text", "--out", str(out)]
            if way != "here":
                settings = scratch / "settings.toml"
                settings.write_text(ENGINE.format(way.split()[1]))
                words += ["--settings", str(settings)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds, peak = plantain(*words)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[way] = {path.name for path in (out / "blobs").rglob("*") if path.is_file()}
            print(
                f"{way:<15} {args.images / seconds:6.1f} pictures/s, {1000 * spent / args.images:.1f} ms of processor "
                f"each in processes that the command waited for, {peak:.0f} MB",
                flush=True,
            )
    same = len(found["here"]) > 0 and all(names == found["here"] for names in found.values())
    print(f"{len(found['here'])} pictures, the same in all" if same else "the catalogues DIFFER")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
