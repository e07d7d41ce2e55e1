"""What of an export could be done elsewhere, and whether that would gain: processor time of each part, in milliseconds.

An export hands out the stored bytes. It is held against what it would cost the same process to send each picture to a
worker of a Ray cluster and have a hash back (Ray's own `put`, call and `get`, without an engine): a part that costs
less than that gains nothing by travelling, however many workers there are. Apart from it: decoding a picture whose
pixel hash is recorded nowhere (an imported one), and signing it (C2PA), whose key stays where it is.

Run: python benchmarks/export_parts.py [--images 2000]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from plantain.pixels.fingerprint import pixel_sha256
from plantain.release.plan import ExportOptions
from plantain.release.proof.provenance import open_signer
from release.certificates import make_chain
from simulated.releases import drawn, make_run, numbered, plantain

REPEATS = 3
LOOPED = 300


def exported(run: Path, out: Path, layout: str, images: int) -> float:
    """Milliseconds of processor for each picture of an export, all of the command in it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    plantain("export", str(run), "--to", str(out), "--layout", layout, "--licence", "CC-BY-4.0")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * spent / images


def looped(work: Callable[[int], object]) -> float:
    """Milliseconds of this process for one piece of work."""
    begun = time.process_time()
    for number in range(LOOPED):
        work(number)
    return 1000 * (time.process_time() - begun) / LOOPED


def sent(data: bytes) -> float:
    """Milliseconds of this process to have a worker hash a picture: by Ray alone, one picture for each call."""
    import ray

    class Bare:
        def hash(self, picture: bytes) -> str:
            return hashlib.sha256(picture).hexdigest()

    actor = ray.remote(Bare).options(num_cpus=1).remote()

    async def all_of_them(count: int) -> None:
        for number in range(count):
            assert len(await actor.hash.remote(ray.put(numbered(data, number)))) == 64

    asyncio.run(all_of_them(10))
    begun = time.process_time()
    asyncio.run(all_of_them(LOOPED))
    spent = 1000 * (time.process_time() - begun) / LOOPED
    ray.kill(actor)
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=2_000)
    args = parser.parse_args()
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    data, _ = drawn(1024)[0]
    task = "0" * 20
    told: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="plantain-") as name:
        scratch = Path(name)
        chain = make_chain(scratch)
        signer = open_signer(ExportOptions(("med-banana",), sign_cert=chain.certificates, sign_key=chain.key))
        make_run(scratch / "run", args.images, 1024)
        for number in range(REPEATS):
            for layout in ("med-banana", "parquet"):
                cost = exported(scratch / "run", scratch / f"{layout}-{number}", layout, args.images)
                told.setdefault(f"export, {layout}", []).append(cost)
            told.setdefault("sent to a worker, a hash back", []).append(sent(data))
            told.setdefault("hashed here", []).append(
                looped(lambda number: hashlib.sha256(numbered(data, number)).hexdigest())
            )
            told.setdefault("decoded, pixels hashed", []).append(
                looped(lambda number: pixel_sha256(numbered(data, number)))
            )
            told.setdefault("signed", []).append(
                looped(lambda number: signer.sign(numbered(data, number), task, 1))
            )
    ray.shutdown()
    middle = {name: statistics.median(row) for name, row in told.items()}
    way = middle["sent to a worker, a hash back"]
    print(f"{args.images} pictures of {len(data):,} bytes, milliseconds of processor each:")
    for name, cost in middle.items():
        print(f"  {name:<32} {cost:6.2f}  ({cost / way:.2f} of sending it)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
