"""What can be seen of the broker under test: in Redis, and in what its program serves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
import redis

from admin.conformance.program import Told, shown
from sinks.redis.command_streams import GROUP
from sinks.redis.ownership_store import OwnershipStore
from trimtab.model import NO_EPOCH, Epoch
from trimtab.wire import keys
from trimtab.wire.command import Command
from trimtab.wire.ownership import Record

PATIENCE_S: Final = 15.0
"""How long a broker may take to do what it must."""

WATCHED_S: Final = 1.0
"""How long it is watched for what it must not do; shorter than what is left of any lease."""

PAUSE_S: Final = 0.01
"""Between two looks."""


class Broken(Exception):
    """A rule is not kept; says what was seen."""


class Sight:
    """Reads what one broker of one cluster does, and changes nothing."""

    def __init__(self, client: redis.Redis, told: Told) -> None:
        self.cluster, self.broker = told.cluster, told.broker
        self.client = client
        self.history = ""
        """The data's history, once the store was opened."""
        self._store = OwnershipStore(client)
        self._served = told.served

    def commands_of(self, broker: str) -> list[Command]:
        """The commands in a broker's stream."""
        entries: Any = self.client.xrange(keys.command_stream(self.cluster, broker))
        return [msgspec.json.decode(each[b"command"], type=Command) for _, each in entries]

    def lease(self) -> str:
        """The lease's value, empty without one."""
        value: Any = self.client.get(keys.lease_key(self.cluster, self.broker))
        return value.decode() if value else ""

    def lease_left_ms(self) -> int:
        left: Any = self.client.pttl(keys.lease_key(self.cluster, self.broker))
        return max(0, int(left))

    def record(self, bundle: str) -> Record | None:
        return self._store.record(self.cluster, bundle)

    def epoch(self, bundle: str) -> Epoch:
        record = self.record(bundle)
        return record.epoch if record else NO_EPOCH

    def served(self) -> dict[str, Epoch]:
        """What the program serves; nothing if it does not answer."""
        return shown(self._served) or {}

    def reads_its_stream(self) -> bool:
        """Whether the broker has asked for commands, as one of the brokers' group."""
        stream = keys.command_stream(self.cluster, self.broker)
        try:
            groups: Any = self.client.xinfo_groups(stream)
        except redis.ResponseError:
            # There is no stream.
            return False
        return any(group["name"] == GROUP.encode() and group["consumers"] for group in groups)

    def stream_is_empty(self) -> bool:
        """Whether no command is left, delivered or not."""
        stream = keys.command_stream(self.cluster, self.broker)
        return self.reads_its_stream() and self.client.xlen(stream) == 0

    def asserted(self) -> bool:
        return bool(self.client.exists(self._assertion_key()))

    def assertion(self) -> dict[str, Any]:
        """The records by bundle of the broker's last assertion; empty without one."""
        text: Any = self.client.get(self._assertion_key())
        records: dict[str, Any] = msgspec.json.decode(text or b"{}").get("records", {})
        return records

    def wait(self, is_so: Callable[[], bool], otherwise: str) -> None:
        """Wait until it is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline:
                raise Broken(f"{otherwise}, within {PATIENCE_S:.0f} s")
            time.sleep(PAUSE_S)

    def hold(self, is_so: Callable[[], bool], otherwise: str, seconds: float = WATCHED_S) -> None:
        """Watch that it stays so."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not is_so():
                raise Broken(otherwise)
            time.sleep(PAUSE_S)

    def _assertion_key(self) -> str:
        return keys.assertion_key(self.cluster, self.history, self.broker)
