"""A fleet that is restarted broker by broker serves every bundle all the time, or nearly."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from tests.agent.support import SESSION, A, B, Job
from tests.agent.turned_by_hand import Host, hints

C = "c:8080"
STEP = (1 << 32) // 12
BUNDLES = [f"t/n/0x{row * STEP:08x}_0x{(row + 1) * STEP:08x}" for row in range(12)]


def serving(hosts: dict[str, Host]) -> list[str]:
    return sorted(b for host in hosts.values() for b in BUNDLES if host.agent.serves(b))


@pytest.mark.parametrize("drain_s", [30.0, 0.0], ids=["drained first", "just restarted"])
def test_after_each_restart_every_bundle_is_served_once(
    job: Job, client: Redis, host: Callable[..., Host], drain_s: float
) -> None:
    hosts = {name: host(name, *BUNDLES[row::3]) for row, name in enumerate((A, B, C))}
    for each in hosts.values():
        each.agent.turn()
    assert serving(hosts) == BUNDLES

    for number, name in enumerate((A, B, C)):
        hints(client, job.cluster, A, B, C)
        leaving = hosts.pop(name)
        leaving.agent.stop(drain_s)
        leaving.agent.end()
        for each in hosts.values():
            each.agent.turn()
        if drain_s:
            # Before it is back: the others have everything.
            assert serving(hosts) == BUNDLES
        hosts[name] = host(name, session=SESSION + 1 + number)
        for _ in range(2):
            for each in hosts.values():
                each.agent.turn()
        assert serving(hosts) == BUNDLES
        assert not leaving.agent.serves(BUNDLES[0])
