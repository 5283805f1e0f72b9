"""A server of a Redis Cluster, which trimtab refuses."""

from __future__ import annotations

from deploy.ports import free_port


def clustered() -> list[str]:
    """Lines of its redis.conf.

    By default its port for the other servers is higher by 10,000: one that connections going out
    are given too.
    """
    return ["cluster-enabled yes", f"cluster-port {free_port()}"]
