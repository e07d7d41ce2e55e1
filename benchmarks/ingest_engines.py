"""How fast pictures come in by `plantain ingest` in this machine's threads, and on one and two workers of Ray.

Pictures are square JPEG files (pieces of a real retina), each with its own hash; text is not looked for. The
cluster stands before the first command, as it does for whoever has one; each command's start and its workers' are in
its figures. All work stays on one machine, so Ray can gain nothing here: shown is what its way costs. Processor time is
that of the command, and of the cluster beside it. The catalogues must hold the same pictures.

Run: python benchmarks/ingest_engines.py [--images 1000] [--side 1024]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from simulated.releases import PATTERNS, drawn, numbered, timed

ENGINE = '[engine]\nkind = "ray"\naddress = "{}"\nworkers = {}\n'
SEEN_EVERY_S = 0.2


def spent_by_children() -> float:
    """Seconds of processor of commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Node:
    """Processor of a node: of its raylet, and of its workers as they were last seen, since nobody waits for them."""

    def __init__(self, raylet: psutil.Process) -> None:
        self._raylet, self._workers = raylet, dict[int, float]()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while self._raylet.is_running():
            with contextlib.suppress(psutil.Error):
                for worker in self._raylet.children():
                    self._workers[worker.pid] = sum(worker.cpu_times()[:2])
            time.sleep(SEEN_EVERY_S)

    def spent(self) -> float:
        """Seconds so far."""
        return float(sum(self._raylet.cpu_times()[:2]) + sum(list(self._workers.values())))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=1_000)
    parser.add_argument("--side", type=int, default=1024, help="pixels")
    args = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    node = Node(psutil.Process(cluster.head_node.all_processes["raylet"][0].process.pid))
    try:
        with tempfile.TemporaryDirectory(prefix="plantain-") as name:
            return compared(Path(name), args.images, args.side, cluster.address, node)
    finally:
        cluster.shutdown()


def compared(scratch: Path, images: int, side: int, address: str, node: Node) -> int:
    (scratch / "scans" / "normal").mkdir(parents=True)
    pictures = drawn(side)
    for number in range(images):
        data = numbered(pictures[number % PATTERNS][0], number)
        (scratch / "scans" / "normal" / f"{number:06}.jpg").write_bytes(data)
    found: dict[str, set[str]] = {}
    for way in ("here, 1 processor", "here", "ray, 1 worker", "ray, 2 workers"):
        out = scratch / way.replace(" ", "-")
        command = ["taskset", "-c", "0"] if way == "here, 1 processor" else []
        command += [sys.executable, "-m", "plantain", "ingest", "folder", str(scratch / "scans")]
        command += ["--modality", "fundus", "--licence", "open", "--skip-text", "--to", str(out)]
        if way.startswith("ray"):
            settings = scratch / "settings.toml"
            settings.write_text(ENGINE.format(address, way.split()[1]))
            command += ["--settings", str(settings)]
        before = spent_by_children(), node.spent()
        seconds, peak = timed(command)
        head, workers = spent_by_children() - before[0], node.spent() - before[1]
        found[way] = {path.name for path in (out / "blobs").rglob("*") if path.is_file()}
        print(
            f"{way:<17} {images / seconds:6.1f} pictures/s; processor a picture: "
            f"command {1000 * head / images:.1f} ms, cluster {1000 * workers / images:.1f} ms; {peak:.0f} MB",
            flush=True,
        )
    same = len(found["here"]) > 0 and all(names == found["here"] for names in found.values())
    print(f"{len(found['here'])} pictures, the same in all" if same else "the catalogues DIFFER")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
