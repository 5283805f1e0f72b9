"""A cluster to look up in: a namespace, brokers that obey while a lookup waits, time as a value."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from itertools import pairwise, starmap

import msgspec
import numpy as np
from redis import Redis

from agent.lookup.server import Lookup
from agent.lookup.settling import LookupSettings
from tests.agent.support import Site
from tests.contracts.asking import journal
from tests.support.opening import keep_alive, let_in, server_ms
from trimtab.model import FULL_RANGE_END, Epoch, HashRange
from trimtab.ownership import Event, State
from trimtab.store.ring import equal_edges
from trimtab.wire.hints import Hints, Pool
from trimtab.wire.keys import bundles_key, command_stream, hints_key, lease_key, ownership_key
from trimtab.wire.ownership import Candidate, Change, Record

NAMESPACE = "t/ns"
WHOLE = f"{NAMESPACE}/{HashRange(0, FULL_RANGE_END)}"
TOPIC = f"persistent://{NAMESPACE}/orders"
HERE = "here:8080"
"""The broker that is asked."""
STANDING = Epoch(1, 7)
EACH = 0.01
"""Load that one bundle adds."""


class Scene:
    """``obeying`` brokers do what they are told each time a lookup pauses."""

    def __init__(self, client: Redis, cluster: str) -> None:
        self.client, self.cluster = client, cluster
        self.now = 1000.0
        self.sites: dict[str, Site] = {}
        self._lock = threading.Lock()
        let_in(client, cluster, 1)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds
            for site in self._told():
                site.obey()

    def _told(self) -> list[Site]:
        sites = list(self.sites.items())
        with self.client.pipeline(transaction=False) as together:
            for broker, _ in sites:
                together.xlen(command_stream(self.cluster, broker))
            lengths = together.execute()
        return [site for (_, site), waiting in zip(sites, lengths, strict=True) if waiting]

    def lookup(self, broker: str = HERE, *, seed: int = 1, **settings: bool) -> Lookup:
        return Lookup(
            LookupSettings(self.cluster, broker, **settings),
            self.client,
            np.random.default_rng(seed),
            self.clock,
            self.sleep,
            lambda: server_ms(self.client),
        )

    def obeying(self, *brokers: str) -> None:
        keep_alive(self.client, self.cluster, brokers)
        self.sites |= {broker: Site(self.client, self.cluster, broker) for broker in brokers}

    def die(self, broker: str) -> None:
        self.client.delete(lease_key(self.cluster, broker))
        self.sites.pop(broker, None)

    def hint(self, *brokers: str, nowhere: Collection[str] = ()) -> None:
        """All of them half loaded; ``nowhere``: namespaces that no broker may take."""
        self.hint_loads(dict.fromkeys(brokers, 0.5), nowhere)

    def hint_loads(
        self,
        loads: Mapping[str, float],
        nowhere: Collection[str] = (),
        proposed: Mapping[str, str] | None = None,
    ) -> None:
        hints = Hints(
            round=1,
            candidates=tuple(starmap(Candidate, loads.items())),
            each=EACH,
            pools=tuple(Pool(namespaces=(name,), candidates=()) for name in nowhere),
            proposed=dict(proposed or {}),
        )
        self.client.set(hints_key(self.cluster), msgspec.json.encode(hints))

    def put(self, record: Record | None, bundle: str = WHOLE) -> None:
        """A record as it stands, or a bundle without one."""
        if record is not None:
            self.client.hset(ownership_key(self.cluster), bundle, msgspec.json.encode(record))
        if record is None or record.state is not State.DELETED:
            self.client.zadd(bundles_key(self.cluster), {bundle: 0})

    def free(self, bundles: int) -> list[str]:
        """That many bundles of NAMESPACE without an owner."""
        names = [f"{NAMESPACE}/{HashRange(*pair)}" for pair in pairwise(equal_edges(bundles))]
        for name in names:
            self.put(Record(state=State.FREE, epoch=STANDING), name)
        return names

    def accepted(self, event: Event) -> list[Change]:
        return [each for each in journal(self.client, self.cluster) if each.event is event]


def owned(by: str, epoch: Epoch = STANDING) -> Record:
    return Record(state=State.OWNED, epoch=epoch, owner=by)
