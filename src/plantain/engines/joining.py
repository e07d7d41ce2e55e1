"""Joining a Ray cluster, or beginning one on this machine: refused in seconds, with a line, where there is none."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from plantain.engines.greeting import wants_token
from plantain.files.installing import install_line
from plantain.files.secrets import environment_without_keys
from plantain.records import InputError

REACH_S = 5.0
"""How long an address has to answer. Ray itself tries for minutes, and prints each try."""


def join(address: str, processors: int | None = None) -> tuple[Any, bool]:
    """Connects this process to a cluster; where it is connected already and no other is named, that stays.

    Args:
        address: "auto", "host:port", or "local" for a cluster of this machine that ends with this process. Its workers
            find no keys in their environment.
        processors: of a local cluster; None for all that this machine has.

    Returns:
        The package ray, and whether the connection was made here.

    Raises:
        InputError: there is no such cluster, this process is connected to another one, or no Ray.
    """
    there = os.environ.get("RAY_ADDRESS", "") or address if address == "auto" else address
    if importlib.util.find_spec("ray") is None:
        raise InputError(f'engine.kind = "ray" needs the package ray: {install_line("ray")}')
    try:
        imported: Any = sys.modules.get("ray")
        if there in ("auto", "local") and imported is not None and imported.is_initialized():
            return imported, False
        there = _of_this_machine(there)
        _reach(there)
        ray = _import_ray()
        if ray.is_initialized():
            _not_another(ray, there)
            return ray, False
        if there == "local":
            with _without_keys():
                _begin(ray, there, include_dashboard=False, num_cpus=processors)
        else:
            _begin(ray, there)
    except InputError:
        raise
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        lines = [line.strip() for line in str(error).strip().splitlines()]
        if lines and lines[0].startswith("Version mismatch"):
            raise InputError(
                f"engine.address: the Ray cluster at {there!r} has other versions, and every machine needs the same of "
                f"Python, Ray and plantain ({' '.join(lines)[:300]})"
            ) from error
        raise InputError(
            f"engine.address: no Ray cluster at {there!r} ({lines[0] if lines else type(error).__name__}); "
            'start one with `ray start --head`, name another address, or set address = "local"'
        ) from error
    return ray, True


def host_and_port(address: str) -> tuple[str, int]:
    """Of "host:port". Raises ValueError."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise ValueError("an address is host:port")
    return host.strip("[]"), int(port)


def in_one_line(error: Exception) -> str:
    """What Ray says of lost work, without its numbers; of a worker that failed as it began, what that raised."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [
        line for line in lines if not re.fullmatch(r"[a-z_]+: \S+", line)
    ]  # actor_id, pid, ip and the like
    lines = lines[-1:] if getattr(error, "actor_init_failed", False) else lines
    return f"{type(error).__name__}: {' '.join(lines)[:200]}" if lines else type(error).__name__


def _begin(ray: Any, address: str, **more: object) -> None:
    ray.init(address=address, log_to_driver=False, configure_logging=False, **more)


def _of_this_machine(address: str) -> str:
    """Where the cluster is that `ray start` began here, for "auto"; any other address as it is."""
    begun = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    return begun.read_text().strip() if address == "auto" and begun.is_file() else address


def _reach(address: str) -> None:
    """Shows Ray this user's token where the head at an address wants one; nothing is asked for "local".

    Raises OSError or ValueError where there is no head of a cluster.
    """
    if "://" in address:
        raise ValueError("Ray's client protocol has no workers of our own; name host:port of the head")
    if address in ("auto", "local"):
        return
    if wants_token(*host_and_port(address), REACH_S):
        show_token()


def _not_another(ray: Any, address: str) -> None:
    """A process has one cluster: work that is meant for another must not go to it unseen."""
    connected = ray.get_runtime_context().gcs_address
    if not _same(host_and_port(address), host_and_port(connected)):
        raise InputError(
            f"engine.address: this process is connected to the Ray cluster at {connected} already, not {address}; end "
            "that connection (ray.shutdown()), or build in a process of its own"
        )


def _same(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether two addresses are one; Ray calls a head on this machine by its address in the network."""
    first, second = (ip_address(socket.gethostbyname(host)) for host, _ in (one, other))
    return one[1] == other[1] and (first == second or first.is_loopback or second.is_loopback)


@contextmanager
def _without_keys() -> Iterator[None]:
    """What is started meanwhile inherits no key: workers call no provider. Ray's own variables stay."""
    kept = environment_without_keys()
    hidden = {
        name: value for name, value in os.environ.items() if name not in kept and not name.startswith("RAY_")
    }
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


def show_token() -> None:
    """Has Ray show this user's token, which `ray get-auth-token` and every local cluster leave behind, where it is not
    said otherwise. Ray reads the variable as it is imported; where it is imported already, its importer sets it up.
    """
    named = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if "ray" not in sys.modules and (named or Path("~/.ray/auth_token").expanduser().is_file()):
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    import ray.exceptions

    return ray
