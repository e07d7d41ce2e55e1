"""Asks the head of a Ray cluster, without Ray, whether it is one and whether it wants a token.

Ray reads how it authenticates once, when it is imported; a driver that shows a token has its own requests checked, too,
and a cluster without one then loses every worker as it begins. So the head is asked first: one call of gRPC.
"""

from __future__ import annotations

import os
import socket

from plantain.files.installing import install_line
from plantain.records import InputError

METHOD = "/ray.rpc.NodeInfoGcsService/CheckAlive"
"""Which every head answers, and to a caller without a token says that it wants one."""


def wants_token(host: str, port: int, seconds: float) -> bool | None:
    """Whether the head at an address wants a token; None where that is not said (TLS, which wants a certificate).

    Args:
        host, port: where it listens.
        seconds: that it has to answer.

    Raises:
        OSError: nothing answers there, or something else than the head of a Ray cluster.
        InputError: the extra for Ray is not installed.
    """
    try:
        import grpc
    except ImportError as error:
        raise InputError(f'engine.kind = "ray" needs the package grpcio: {install_line("ray")}') from error
    socket.create_connection((host, port), seconds).close()  # says plainly what is wrong with an address
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return None
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with grpc.insecure_channel(target, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(METHOD)(b"", timeout=seconds)
        except grpc.RpcError as error:
            code = error.code()
            if code is grpc.StatusCode.UNAUTHENTICATED:
                return True
            if code not in (
                grpc.StatusCode.UNIMPLEMENTED,
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
            ):
                return None
            raise ConnectionError("what answers there is no head of a Ray cluster") from error
    return False
