"""A page in headless Chromium over its own debugging pipe: what it asked the network for, complained of and shows."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)  # fmt: skip


@dataclass
class Page:
    """One open page. `requests` are addresses it asked for, `complaints` console errors and exceptions."""

    commands: int
    answers: int
    session: str = ""
    number: int = 0
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    loaded: bool = False
    rest: bytes = b""

    def send(self, method: str, **parameters: object) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def evaluate(self, expression: str) -> object:
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def go(self, file: Path, width: int, *, scripts: bool = True) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.requests.clear()
        self.complaints.clear()
        self.loaded = False
        self.send("Page.navigate", url=file.absolute().as_uri())
        while not self.loaded:
            self._next()

    def _next(self) -> dict:
        while b"\0" not in self.rest:
            piece = os.read(self.answers, 1 << 20)
            assert piece, "the browser went away"
            self.rest += piece
        line, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(line)
        method, about = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Runtime.exceptionThrown" or (
            method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning")
        ):
            self.complaints.append(json.dumps(about))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(about["args"]))
        elif method == "Page.loadEventFired":
            self.loaded = True
        return message


@contextlib.contextmanager
def open_browser(profile: Path) -> Iterator[Page]:
    """A fresh browser with a blank page; it is gone afterwards."""
    assert CHROMIUM is not None
    command_end, command_start = os.pipe()
    answer_end, answer_start = os.pipe()

    def wire() -> None:  # the browser reads commands at 3 and answers at 4
        saved_in, saved_out = os.dup(command_end), os.dup(answer_start)
        os.dup2(saved_in, 3)
        os.dup2(saved_out, 4)

    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        preexec_fn=wire,
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_end)
    os.close(answer_start)
    try:
        page = Page(command_start, answer_end)
        targets = page.send("Target.getTargets")["targetInfos"]
        target = next(t for t in targets if t["type"] == "page")["targetId"]
        page.session = page.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            page.send(f"{domain}.enable")
        yield page
    finally:
        process.terminate()
        process.wait(timeout=300)
        os.close(command_start)
        os.close(answer_end)
