"""Tells systemd how the job is, where systemd started it: sd_notify(3), a datagram a message.

Elsewhere there is no ``NOTIFY_SOCKET``, and nothing is sent. The unit is
deploy/systemd/trimtab-job.service.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

_SOCKET: Final = "NOTIFY_SOCKET"


def tell_ready(what: str) -> None:
    """It has started; ``what`` it does now is shown by ``systemctl status``."""
    _send(f"READY=1\nSTATUS={what}")


def tell_alive() -> None:
    """It is not stuck: systemd restarts it after ``WatchdogSec`` without this."""
    _send("WATCHDOG=1")


def tell_stopping() -> None:
    """It ends in order."""
    _send("STOPPING=1")


def _send(message: str) -> None:
    address = os.environ.get(_SOCKET, "")
    if not address:
        return
    # "@" stands for the zero byte that an abstract address begins with.
    address = "\0" + address[1:] if address.startswith("@") else address
    # The job goes on without a supervisor that listens.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        # It must not wait for one that listens and does not read.
        sender.setblocking(False)
        sender.sendto(message.encode(), address)
