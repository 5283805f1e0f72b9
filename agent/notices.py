"""What an agent logs of its cluster: why it waits, and which bundles it does not serve, and why."""

from __future__ import annotations

import re
from typing import Final

import structlog

from agent.commands.obeying import Obeyed
from agent.ownership.seen import Seen
from agent.settings import AgentSettings
from trimtab.wire.command import Command
from trimtab.wire.ownership import Record

_REBUILD: Final = "have the records rebuilt: HDEL trimtab:{CLUSTER}:open replid"


class Notices:
    """The log of one agent."""

    def __init__(self, settings: AgentSettings, seen: Seen) -> None:
        self._seen = seen
        self._log = structlog.get_logger().bind(cluster=settings.cluster, broker=settings.broker)
        self._causes: set[str] = set()
        """Causes told since the last successful turn, without their numbers. The last cause, such
        as an upgrade of the job, may differ from the first.
        """

    def waiting(self, cause: str) -> None:
        """Tell why the agent waits for the store, once until it is well again."""
        # Retried every two seconds, and the remaining seconds in the text differ each time.
        text = re.sub(r"\d+", "", cause)
        if text not in self._causes:
            self._causes.add(text)
            self._log.warning("waiting for the store", cause=cause)

    def well(self) -> None:
        """Tell all causes again from now on."""
        self._causes.clear()

    def obeyed(self, command: Command, obeyed: Obeyed) -> None:
        self._log.debug("command", kind=command.kind, bundle=command.bundle, obeyed=obeyed)

    def declined(self, command: Command, why: str) -> None:
        self._log.warning(
            "a bundle is not split", bundle=command.bundle, command=command.id, why=why
        )

    def forgotten(self, bundle: str, record: Record) -> None:
        self._log.error(
            f"not served: the store has forgotten what this broker saw of the bundle; {_REBUILD}",
            bundle=bundle,
            given=tuple(record.epoch),
            seen=tuple(self._seen.epoch(bundle)),
        )

    def frozen(self, bundle: str, record: Record) -> None:
        self._log.error(
            "not served: the bundle's record has a generation above the store's, so no request can "
            f"change it; {_REBUILD}",
            bundle=bundle,
            epoch=tuple(record.epoch),
        )

    def left(self, given: int) -> None:
        """Tell how many bundles it gave away before it ended."""
        self._log.info("left", given=given)

    def superseded(self, cause: str) -> None:
        self._log.error("ending", cause=cause)

    def failed(self) -> None:
        """Tell the exception that is being handled: the broker's own code failed."""
        self._log.exception("failed")

    def lease_kept(self, cause: str) -> None:
        self._log.warning("the agent ended; its lease ends by itself", cause=cause)
