"""Joining a Ray cluster, or starting one on this machine: refused in seconds, in one line, where there is none."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plantain.files.installed import install_line
from plantain.files.secrets import environment_without_keys
from plantain.records import InputError

REACH_S = 5.0
"""Seconds that an address has to answer. Ray itself tries for minutes, and prints each try."""

QUIET: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}

CHECK_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"
"""A path that every head answers, with a refusal for a caller without a token."""


def join(address: str, processors: int | None = None) -> tuple[Any, bool]:
    """Connect this process to a Ray cluster; an existing connection is reused.

    Args:
        address: "auto" for the cluster of this machine, else a local one; "host:port"; or "local" for a cluster of this
            machine that ends with this process, and whose workers have no keys in their environment.
        processors: number of cores for a local cluster; None for all cores of this machine.

    Returns:
        The imported package ray, and True if this call made the connection, False if it existed.

    Raises:
        InputError: the cluster cannot be reached, or Ray is not installed.
    """
    there = os.environ.get("RAY_ADDRESS", "") or address if address == "auto" else address
    if importlib.util.find_spec("ray") is None:
        raise InputError(f'engine.kind = "ray" needs the package ray: {install_line("ray")}')
    try:
        imported: Any = sys.modules.get("ray")
        if imported is not None and imported.is_initialized():
            connected = imported.get_runtime_context().gcs_address
            if there not in ("auto", "local", connected):
                raise InputError(
                    f"engine.address: this process is connected to the Ray cluster at {connected} already, not "
                    f"{there}; end that connection (ray.shutdown())"
                )
            return imported, False
        there = _of_this_machine() if there == "auto" else there
        if there != "local":
            _show_token_where_wanted(*host_and_port(there))
        ray = _import_ray()
        job = ray.job_config.JobConfig()
        job._runtime_env_has_working_dir = lambda: (
            True
        )  # or workers import first from this process's directory
        if there == "local":
            with _without_keys():
                ray.init(address=there, include_dashboard=False, num_cpus=processors, **QUIET, job_config=job)
        else:
            ray.init(address=there, **QUIET, job_config=job)
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(
            f"engine.address: no Ray cluster at {there!r} that can be joined ({why}); start one with "
            "`ray start --head` (the same Python, Ray and plantain on every machine), name another address, or set "
            'address = "local"'
        ) from error
    return ray, True


def host_and_port(address: str) -> tuple[str, int]:
    """Split "host:port" into host, without brackets, and port. Raise ValueError for any other text."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise ValueError("an address is host:port")
    return host.strip("[]"), int(port)


def in_one_line(error: Exception) -> str:
    """Format an error of Ray as one line without ids: type and message, or the last line of a failed start."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [
        line for line in lines if not re.fullmatch(r"[a-z_]+: \S+", line)
    ]  # actor_id, pid, ip and the like
    lines = lines[-1:] if getattr(error, "actor_init_failed", False) else lines
    return f"{type(error).__name__}: {' '.join(lines)[:200]}" if lines else type(error).__name__


def _of_this_machine() -> str:
    """Return the cluster that `ray start` started here; "local" if there is none, or its head is gone."""
    record = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    with contextlib.suppress(OSError, ValueError):
        address = record.read_text().strip()
        wants_token(*host_and_port(address))
        return address
    return "local"


def _show_token_where_wanted(host: str, port: int) -> None:
    """Let Ray send this user's token to a head that requires one, unless the environment decides otherwise.

    Ray leaves a token in the user's home with the first local cluster, and reads how it authenticates once, when it is
    imported. A driver that shows a token has its own requests checked, too: a head without one then takes each
    worker's owner for dead. So the head is asked before Ray is imported.
    """
    known = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if wants_token(host, port) and (known or Path("~/.ray/auth_token").expanduser().is_file()):
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def wants_token(host: str, port: int) -> bool:
    """Return True if the cluster's head at an address requires a token, by one gRPC call without Ray.

    Raises:
        OSError: no server answers, or it is not the head of a Ray cluster.
        InputError: the extra for Ray is not installed.
    """
    try:
        import grpc
    except ImportError as error:
        raise InputError(f'engine.kind = "ray" needs the package grpcio: {install_line("ray")}') from error
    socket.create_connection((host, port), REACH_S).close()  # raises a clear error for a bad address
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return False  # it requires a certificate
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with grpc.insecure_channel(target, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(CHECK_ALIVE)(b"", timeout=REACH_S)
        except grpc.RpcError as error:
            code, codes = error.code(), grpc.StatusCode
            if code in (codes.UNIMPLEMENTED, codes.UNAVAILABLE, codes.DEADLINE_EXCEEDED):
                raise ConnectionError("the server there is not the head of a Ray cluster") from error
            return bool(code is codes.UNAUTHENTICATED)
    return False


@contextmanager
def _without_keys() -> Iterator[None]:
    """Hide keys, and how this process reaches other clusters, from the processes that a local cluster starts."""
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


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    import ray.exceptions

    return ray
