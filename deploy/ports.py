"""Free ports on the loopback interface."""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"

_given: set[int] = set()
"""Ports that this process was given; a server that is to get one may not listen yet."""


def free_port() -> int:
    """A port without a listener, another one each time, below the range of outgoing connections.

    The system's own choice (port 0) comes from that range: another process may then be using it
    for a connection when a killed server needs it again.
    """
    for port in random.sample(range(20_000, 32_000), 200):
        if port not in _given and is_free(port):
            _given.add(port)
            return port
    raise OSError("none of 200 ports tried between 20000 and 32000 is free")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: connections in TIME_WAIT must not count as a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(host: str, port: int, timeout: float = 1.0) -> bool:
    """Whether something accepts connections there."""
    try:
        socket.create_connection((host, port), timeout).close()
    except OSError:
        return False
    return True
