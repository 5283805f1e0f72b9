"""The cost of a transition: the script compared with its bare writes.

One broker's bundle goes from owner to owner and back, three transitions each time (transfer,
hand-over, serve), through the store as job and brokers call it. The comparison is with the same
writes (record, commands and journal entry) in a MULTI that reads and compares nothing, and with a
plain SET of the record. All three use one connection to a Redis set up like the embedded one, and
run in short turns. Figures are medians of the turns' ratios.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from statistics import median
from typing import Final

import msgspec
from redis import Redis

from benchmarks.figures import Bar, Figure, Limit, figure
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Transition, TransitionOutcome

CLUSTER: Final = "bench"
A: Final = "broker-1:8080"
B: Final = "broker-2:8080"
BUNDLE: Final = "tenant/namespace/0x00000000_0xffffffff"
TURNS: Final = 40
CYCLES: Final = 50
"""Transfers a turn."""


def script_figures(client: Redis) -> list[Figure]:
    """Measure the three sides, turn by turn."""
    gate = ClusterGate(client)
    closure = gate.open(CLUSTER, 1)
    if closure is not None:
        gate.open(CLUSTER, 1, closure.history)
    for broker in (A, B):
        Leases(client).renew(CLUSTER, broker, 1, 10_000)
    scripts, bare = _Scripts(client), _Bare(client)
    rates: dict[str, list[float]] = {"script": [], "multi": [], "set": []}
    for _ in range(TURNS):
        # The lease must outlive the turn.
        for broker in (A, B):
            Leases(client).renew(CLUSTER, broker, 1, 10_000)
        for name, side in (("script", scripts.cycle), ("multi", bare.cycle), ("set", bare.sets)):
            rates[name].append(_rate(side))
    return [
        _ratio(
            "ownership.script_ratio",
            rates["script"],
            rates["multi"],
            "the same writes in MULTI without checks",
            Bar(Limit.AT_LEAST, 0.6),
        ),
        _ratio("ownership.script_to_set", rates["script"], rates["set"], "a plain SET"),
    ]


def _rate(cycle: Callable[[], int]) -> float:
    """Run one turn; returns its transitions, or their twins, a second."""
    started = time.perf_counter()
    done = sum(cycle() for _ in range(CYCLES))
    return done / (time.perf_counter() - started)


def _ratio(
    name: str, ours: list[float], theirs: list[float], of: str, bar: Bar | None = None
) -> Figure:
    return figure(
        name,
        median(one / other for one, other in zip(ours, theirs, strict=True)),
        "of that rate",
        f"{median(ours):,.0f} transitions/s by script, {median(theirs):,.0f}/s by {of}",
        bar,
        {"script/s": ours, "other/s": theirs},
    )


class _Scripts:
    """Moves a bundle to and fro through the store, as job and brokers do."""

    def __init__(self, client: Redis) -> None:
        self._store = OwnershipStore(client)
        self._numbers = count()
        claim = Transition(
            id="claim", bundle=BUNDLE, event=Event.CLAIM, expect=NO_EPOCH, broker=A, actor=A
        )
        self._epoch = self._accepted(self._store.apply(CLUSTER, claim))
        self._owner, self._other = A, B

    def cycle(self) -> int:
        """One transfer: three transitions."""
        number = next(self._numbers)
        request = transfer(f"move/{number}", BUNDLE, self._owner, self._other, self._epoch)
        done = self._store.apply_batch(
            CLUSTER, [request], generation=1, query_id="bench", batch=number
        )
        epoch = self._accepted(done.outcomes[0])
        own = _command(f"own/{number}", self._other, CommandKind.OWN, BUNDLE)
        for event, actor, told in (
            (Event.HAND_OVER, self._owner, (own,)),
            (Event.SERVE, self._other, ()),
        ):
            answer = Transition(
                id=f"{event}/{number}",
                bundle=BUNDLE,
                event=event,
                expect=epoch,
                actor=actor,
                commands=told,
            )
            epoch = self._accepted(self._store.apply(CLUSTER, answer))
        self._epoch = epoch
        self._owner, self._other = self._other, self._owner
        return 3

    @staticmethod
    def _accepted(outcome: TransitionOutcome) -> Epoch:
        if not outcome.accepted or outcome.record is None:
            raise RuntimeError(f"refused: {outcome}")
        return outcome.record.epoch


class _Bare:
    """The writes of the three transitions, and nothing else."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._record = (
            b'{"state":"Releasing","epoch":[1,12],"owner":"broker-1:8080","destination":'
            b'"broker-2:8080","since":1800000000000,"by":"move/1"}'
        )
        self._change = b'{"cluster":"bench","bundle":"%s","event":"transfer","record":%s}' % (
            BUNDLE.encode(),
            self._record,
        )
        command = _command("own/1", B, CommandKind.OWN, BUNDLE).stamped(
            Epoch(1, 12), 1_800_000_000_000, 0
        )
        self._command = msgspec.json.encode(command)
        self._answer = b"[%s]" % self._record

    def cycle(self) -> int:
        for commands, applied in ((2, True), (1, False), (0, False)):
            with self._client.pipeline(transaction=True) as writes:
                writes.hset("bare:ownership", BUNDLE, self._record)
                writes.xadd("bare:journal", {"change": self._change})
                for number in range(commands):
                    writes.xadd(
                        f"bare:commands:{number}", {"command": self._command}, maxlen=10_000
                    )
                if applied:
                    writes.hset("bare:applied", "bench", self._answer)
                writes.execute()
        return 3

    def sets(self) -> int:
        for _ in range(3):
            self._client.set("bare:record", self._record)
        return 3


def transfer(name: str, bundle: str, source: str, destination: str, epoch: Epoch) -> Transition:
    """The request that the job makes for a move."""
    told = ((destination, CommandKind.PREPARE), (source, CommandKind.TRANSFER))
    return Transition(
        id=name,
        bundle=bundle,
        event=Event.TRANSFER,
        expect=epoch,
        broker=destination,
        commands=tuple(
            _command(f"{name}/{kind}", broker, kind, bundle, destination) for broker, kind in told
        ),
        within_ms=30_000,
    )


def _command(
    name: str, broker: str, kind: CommandKind, bundle: str, destination: str | None = None
) -> Command:
    return Command(
        id=name,
        cluster=CLUSTER,
        broker=broker,
        kind=kind,
        bundle=bundle,
        destination=destination,
    )
