"""A model hub on loopback, as far as a download asks it: the list of a model's files, and their bytes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def digest(file: Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()


class Hub:
    """Serves one folder as every model of that commit; `asked` counts the bodies that were sent, by file."""

    def __init__(self, folder: Path, commit: str) -> None:
        self.folder, self.commit = folder, commit
        self.asked: Counter[str] = Counter()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._answer(body=False)

            def do_GET(self) -> None:
                self._answer(body=True)

            def log_message(self, *said: object) -> None:
                pass

            def _answer(self, *, body: bool) -> None:
                path = self.path.partition("?")[0]
                if path.startswith("/api/models/"):
                    files = [p for p in sorted(hub.folder.rglob("*")) if p.is_file()]
                    names = [p.relative_to(hub.folder).as_posix() for p in files]
                    told: object = {
                        "id": "some/model",
                        "sha": hub.commit,
                        "siblings": [{"rfilename": name} for name in names],
                    }
                    if "/tree/" in path:
                        told = [
                            {"type": "file", "path": name, "size": file.stat().st_size, "oid": digest(file)}
                            for name, file in zip(names, files, strict=True)
                        ]
                    self._send(200, json.dumps(told).encode(), {"Content-Type": "application/json"}, body)
                    return
                name = path.partition(f"/resolve/{hub.commit}/")[2]
                file = hub.folder / name
                if not name or not file.is_file():
                    self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": hub.commit}, body)
                    return
                data = file.read_bytes()
                headers = {"ETag": f'"{digest(file)}"', "X-Repo-Commit": hub.commit}
                hub.asked[name] += body
                self._send(200, data, headers, body)

            def _send(self, status: int, data: bytes, headers: dict[str, str], body: bool) -> None:
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if body:
                    self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
