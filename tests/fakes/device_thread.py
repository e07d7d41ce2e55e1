"""A device in a thread of the tests' own process, which has torch: a process of its own takes seconds to load it."""

from __future__ import annotations

import socket
import threading
from multiprocessing.connection import Connection

from plantain.models.diffusers.devices import DeviceProcess
from plantain.models.diffusers.jobs import Done, Job
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.models.diffusers.worker import serve

_TURN = threading.Lock()
"""Devices draw in turns: while a pipeline is loaded, modules of the whole process are made without their weights."""


class DeviceThread(DeviceProcess):
    """The same queue and drawing as in a process of its own; it only cannot be killed."""

    def _start(self) -> Connection:
        quiet_libraries()
        from plantain.models.diffusers.engine import Engine

        engine = Engine(self.device)

        def run(job: Job) -> Done:
            with _TURN:
                return engine.run(job)

        ours, theirs = socket.socketpair()
        arguments = Connection(theirs.detach()), run
        threading.Thread(target=serve, args=arguments, name=self.device, daemon=True).start()
        return Connection(ours.detach())
