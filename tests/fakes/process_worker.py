"""A program of another environment, as docs/design/open-models.md describes it: python -I process_worker.py.

Imports nothing of plantain. Its settings choose its faults.
"""

import json
import os
import sys
from pathlib import Path

from PIL import Image, ImageOps

starts = 0


def edit(job, out, settings):
    mode = settings.get("mode", "good")
    image = Image.open(job["image"])
    assert image.mode == "RGB", image.mode
    assert image.size == (job["width"], job["height"])
    path = out / f"{job['id']}.png"
    if mode == "garbage":
        path.write_bytes(b"\x89PNG\r\n\x1a\n no image at all")
    elif mode == "missing":
        pass
    elif mode == "refuse":
        (out / f"{job['id']}.json").write_text('{"outcome": "refused", "reason": "I would rather not"}')
    elif mode == "size":
        image.resize((32, 32)).save(path)
    elif job["region"]:
        mask = Image.open(job["region"])
        assert mask.size == image.size
        image.paste((255, 0, 0), mask=mask.convert("L"))
        image.save(path)
    else:
        ImageOps.invert(image).save(path)


def main():
    print("loading weights, this program is talkative")
    for line in sys.stdin:
        manifest = json.loads(Path(line.strip()).read_text())
        assert manifest["contract"] == 1
        settings = manifest["settings"]
        out = Path(manifest["out"])
        if settings.get("log"):
            with Path(settings["log"]).open("a") as log:
                log.write(json.dumps({"pid": os.getpid(), **manifest}) + "\n")
        for job in manifest["jobs"]:
            if settings.get("mode") == "crash" and job["seed"] == 1:
                raise SystemExit("CUDA error: an illegal memory access was encountered")
            edit(job, out, settings)
        print("progress: 100 %")
        print(line.strip(), flush=True)


main()
