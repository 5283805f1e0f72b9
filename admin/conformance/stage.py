"""A cluster of its own, in which the kit is the job and every other broker."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import msgspec
import redis

from admin.conformance.line import Line
from admin.conformance.program import Launch, Told, shown
from admin.conformance.sight import PAUSE_S, Broken, Sight
from deploy.ports import LOOPBACK, free_port
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.lease import Lease
from sinks.redis.leasing.leases import Leases
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Record, Transition, TransitionOutcome

LEASE_MS: Final = 4500
"""The longest lease granted here: shorter than in practice, so that its end is seen soon."""

MARGIN_MS: Final = 1000
"""How long before its end a broker no longer counts on its lease. It counts from its request, so by
the server's clock it stops even earlier."""

OTHER: Final = "127.0.0.1:2"
_GENERATION: Final = 1
_DEADLINE_MS: Final = 30_000
_DAY_MS: Final = 86_400_000
_VOUCH_S: Final = 0.2


class Stage(Sight):
    """One broker under test, in one cluster."""

    def __init__(self, client: redis.Redis, told: Told, launch: Launch, line: Line) -> None:
        """``told`` sends the program to the server through ``line``."""
        super().__init__(client, told)
        self.line = line
        self._told, self._launch = told, launch
        self._leases = Leases(client)
        self._gate = ClusterGate(client, LEASE_MS)
        self._numbers = count()
        self.program = launch(told)
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._vouch, daemon=True)
        self._clock.start()

    def leave(self) -> None:
        """End the program and what this cluster has running."""
        self._ended.set()
        self._clock.join()
        self.program.end()

    def open(self) -> None:
        """Let requests in."""
        closure = self._gate.open(self.cluster, _GENERATION)
        if closure is not None:
            self._gate.open(self.cluster, _GENERATION, closure.history)
        self.history = self._open_hash("replid")

    def close(self) -> None:
        """Close the store, as after a restart of the server."""
        self.client.hset(keys.open_key(self.cluster), "replid", "0" * 40)

    def reopen(self) -> None:
        self.client.hset(keys.open_key(self.cluster), "replid", self.history)

    def isolate(self) -> None:
        """Grant nothing, and refuse every request: too few replicas acknowledge."""
        self.client.hset(
            keys.open_key(self.cluster), mapping={"replicas": "1", "replicas_set": "1"}
        )

    def lose_lease(self) -> None:
        """Take the broker's lease from the server, which the broker learns at its next renewal."""
        self.client.delete(keys.lease_key(self.cluster, self.broker))

    def rejoin(self) -> None:
        self.client.hset(keys.open_key(self.cluster), "replicas", "0")

    def ask(self, bundle: str, event: Event, **more: Any) -> TransitionOutcome:
        """A request of the job, which must be accepted."""
        number = next(self._numbers)
        known = self.record(bundle)
        request = Transition(
            id=f"{self.cluster}/conformance/{number}/0",
            bundle=bundle,
            event=event,
            expect=known.epoch if known else NO_EPOCH,
            within_ms=_DEADLINE_MS,
            **more,
        )
        [outcome] = self._store.apply_batch(
            self.cluster,
            [request],
            generation=_GENERATION,
            query_id="conformance",
            batch=number,
        ).outcomes
        if not outcome.accepted:
            raise Broken(f"{event.value} of {bundle} is refused: {outcome.reason}")
        return outcome

    def command(self, kind: CommandKind, bundle: str, **more: Any) -> Command:
        """A command as the job stamps it, by the bundle's record as it is now."""
        record = self.record(bundle)
        bare = Command(
            id=record.by + f"/{kind.value}" if record else "none",
            cluster=self.cluster,
            broker=self.broker,
            kind=kind,
            bundle=bundle,
            reason="conformance",
            **more,
        )
        since = record.since if record else 0
        return bare.stamped(record.epoch if record else NO_EPOCH, since, since + _DEADLINE_MS)

    def send(self, command: Command | bytes) -> None:
        """Put a command, or other fields, into the broker's stream."""
        text = command if isinstance(command, bytes) else msgspec.json.encode(command)
        self.client.xadd(keys.command_stream(self.cluster, self.broker), {"command": text})

    def assign(self, bundle: str) -> Command:
        """Give the bundle to the broker, and return the command that is not sent yet."""
        self.ask(bundle, Event.ASSIGN, broker=self.broker)
        return self.command(CommandKind.OWN, bundle)

    def give(self, bundle: str) -> Command:
        """Give it to the broker; returns the command once the broker serves."""
        own = self.assign(bundle)
        self.send(own)
        self.wait(lambda: bundle in self.served(), f"{bundle} is not served after own")
        return own

    def own_without_a_process(self, bundle: str) -> None:
        """A record from an earlier process of the broker's name, which is gone."""
        key = keys.lease_key(self.cluster, self.broker)
        self.client.set(key, "+1", px=LEASE_MS)
        claim = Transition(
            id=f"{self.broker}/1/{bundle}/claim",
            bundle=bundle,
            event=Event.CLAIM,
            expect=NO_EPOCH,
            broker=self.broker,
            actor=self.broker,
        )
        [outcome] = self._store.apply_all(self.cluster, [claim])
        if not outcome.accepted:
            raise Broken(f"the record could not be prepared: {outcome.reason}")
        self.client.delete(key)

    def restore(self, bundle: str, owner: str) -> Epoch:
        """Write a newer record with this owner, as a rebuild does; returns its epoch."""
        known = self.record(bundle)
        if known is not None and known.owner:
            self.client.srem(keys.owned_key(self.cluster, known.owner), bundle)
        epoch = Epoch(_GENERATION, (known.epoch.counter if known else 0) + 1)
        record = Record(state=State.OWNED, epoch=epoch, owner=owner, by="conformance/restored")
        text = msgspec.json.encode(record)
        self.client.hset(keys.ownership_key(self.cluster), bundle, text)
        self.client.sadd(keys.owned_key(self.cluster, owner), bundle)
        self.client.zadd(keys.bundles_key(self.cluster), {bundle: 0})
        return epoch

    def set_back(self, bundle: str, older: Record, owner: str) -> None:
        """Write an older record with this owner, as a server that lost its last writes has it."""
        self.restore(bundle, owner)
        record = msgspec.structs.replace(older, owner=owner, by="conformance/older")
        self.client.hset(keys.ownership_key(self.cluster), bundle, msgspec.json.encode(record))

    def before(self, asked: re.Pattern[bytes], act: Callable[[], object]) -> threading.Event:
        """Act before the program's first request that matches ``asked``; then set the event."""
        done = threading.Event()

        def look(request: bytes) -> None:
            if not done.is_set() and asked.search(request):
                act()
                done.set()

        self.line.on_request = look
        return done

    def move_history(self, must_have_left_ms: int) -> threading.Event:
        """Answer renewals as a new master with the lease does; the event is set after the first."""
        told = threading.Event()
        known = re.compile(rb"\$40\r\n%s\r\n\$\d+\r\n\d+\r\n" % self.history.encode())
        left = str(must_have_left_ms).encode()
        instead = b"$40\r\n%s\r\n$%d\r\n%s\r\n" % (b"1" * 40, len(left), left)

        def edit(answer: bytes) -> bytes:
            edited, renewals = known.subn(instead, answer)
            if renewals:
                told.set()
            return edited

        self.line.edit_answer = edit
        return told

    @contextmanager
    def twin(self) -> Iterator[Callable[[], dict[str, Epoch]]]:
        """A second process of the broker's name; gives what it serves."""
        told = msgspec.structs.replace(self._told, served=f"{LOOPBACK}:{free_port()}")
        program = self._launch(told)
        program.start()
        try:
            yield lambda: shown(told.served) or {}
        finally:
            program.end()

    def other_lives(self) -> None:
        """Let another broker hold a lease until the end."""
        self.client.set(keys.lease_key(self.cluster, OTHER), "+1", px=_DAY_MS)

    def other_reports(self, bundle: str, event: Event) -> None:
        """A step of the other broker, which must be accepted."""
        step = Transition(
            id=f"{OTHER}/1/{bundle}/{event.value}",
            bundle=bundle,
            event=event,
            expect=self.epoch(bundle),
            actor=OTHER,
        )
        [outcome] = self._store.apply_all(self.cluster, [step])
        if not outcome.accepted:
            raise Broken(f"{event.value} of {bundle} by {OTHER} is refused: {outcome.reason}")

    def reports(self, bundle: str, event: Event, name: str) -> None:
        """A step of the broker under test, as if its process had asked for it under this id."""
        step = Transition(
            id=name,
            bundle=bundle,
            event=event,
            expect=self.epoch(bundle),
            actor=self.broker,
            session=int(self.lease()[1:]),
        )
        [outcome] = self._store.apply_all(self.cluster, [step])
        if not outcome.accepted:
            raise Broken(f"{event.value} of {bundle} is refused: {outcome.reason}")

    def renew_as(self, session: int) -> Lease:
        """Ask for the lease as another process of the broker's name."""
        return self._leases.renew(self.cluster, self.broker, session, LEASE_MS)

    def start(self) -> None:
        """Start the program; returns once it holds the lease."""
        self.program.start()
        key = keys.lease_key(self.cluster, self.broker)
        self.wait(
            lambda: self.lease().startswith("+"),
            f"it takes no lease: {key} has no value of + and digits",
        )

    def stop(self, look: Callable[[], None]) -> None:
        """Have the program end, and ``look`` at it all the while."""
        with ThreadPoolExecutor(1) as pool:
            ending = pool.submit(self.program.stop)
            while not ending.done():
                look()
                time.sleep(PAUSE_S)
            ending.result()

    def _open_hash(self, field: str) -> str:
        value: Any = self.client.hget(keys.open_key(self.cluster), field)
        return value.decode() if value else ""

    def _vouch(self) -> None:
        """The job's note that the server's clock did not jump."""
        while not self._ended.wait(_VOUCH_S):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            clock: Any = self.client.time()
            now = str(1000 * clock[0] + clock[1] // 1000)
            self.client.set(keys.clock_key(self.cluster), now, px=1000)
