"""Kill the server of a study (-9) at random while three scripted readers work: no answer is lost or stored twice."""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from plantain.review.ratings import Ratings
from simulated.readers import ScriptedReader, noise_study


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    kills = parser.parse_args().kills
    draw = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        study = noise_study(Path(folder) / "study", cases=40 * kills)
        ratings = Ratings.open(study)
        tokens = [ratings.invite()[1] for _ in range(3)]
        ratings.close()
        server, address, port = _serve(study.folder, 0)
        readers = [ScriptedReader(address, token) for token in tokens]
        stop = threading.Event()

        def work(reader: ScriptedReader) -> None:
            reader.sign_in()
            for _ in reader.read(40 * kills):
                if stop.is_set():
                    return

        threads = [threading.Thread(target=work, args=(reader,)) for reader in readers]
        for thread in threads:
            thread.start()
        done = 0
        while done < kills:
            before = sum(len(reader.confirmed) for reader in readers)
            while sum(len(reader.confirmed) for reader in readers) == before:
                time.sleep(0.01)  # until the server really answers
            time.sleep(draw.uniform(0.0, 0.4))
            server.send_signal(signal.SIGKILL)
            server.wait()
            done += 1
            server, _, _ = _serve(study.folder, port)
        second = subprocess.run(
            [*COMMAND, str(study.folder), "--port", "0"], capture_output=True, text=True, check=False
        )
        stop.set()
        for thread in threads:
            thread.join()
        server.terminate()
        server.wait()
        ratings = Ratings.open(study)
        history, again = ratings.history(), sum(reader.again for reader in readers)
        lost = twice = 0
        for number, reader in enumerate(readers):
            mine = [answer for answer in history if answer.reader == f"R{number + 1:02d}"]
            ids = {answer.id for answer in mine}
            lost += sum(row not in ids for row in reader.confirmed.values())
            twice += len(mine) - len({answer.item for answer in mine})
        ratings.close()
    confirmed = sum(len(reader.confirmed) for reader in readers)
    print(
        f"{done} kills, {confirmed} answers confirmed, {again} requests sent again: {lost} lost, {twice} twice"
    )
    print(f"a second server: exit {second.returncode}, {second.stderr.strip().splitlines()[-1]}")
    return 0 if not lost and not twice and second.returncode == 2 else 1


COMMAND = [sys.executable, "-m", "plantain", "review", "serve", "--json"]


def _serve(folder: Path, port: int) -> tuple[subprocess.Popen[str], str, int]:
    server = subprocess.Popen([*COMMAND, str(folder), "--port", str(port)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["url"]
    return server, address, int(address.rsplit(":", 1)[1])


if __name__ == "__main__":
    sys.exit(main())
