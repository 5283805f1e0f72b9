"""What a broker offers beside `agent.broker.Broker` so that its topics can migrate."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from trimtab.migration.migration import Target


class CannotMigrate(Exception):
    """A step that failed, with the reason: it is counted, shown to operators, and tried again."""


class TopicLost(CannotMigrate):
    """Blue has nothing of a topic that a rollback would take back, not even that it was removed:
    its storage was lost, or its users deleted it. Green keeps it, and operators are told."""


class TopicGone(CannotMigrate):
    """A migration from green has sent a topic's clients on, to a third cluster: writes may be there
    that green did not take. It stays there, and operators are told where."""

    def __init__(self, where: str) -> None:
        super().__init__(f"it has gone on from green to {where}")
        self.where = where
        """The web service of the third cluster."""


class AskAgain(Exception):
    """It is not settled yet where a new topic is created: have the client ask again, in a fraction
    of a second."""


@runtime_checkable
class Migrating(Protocol):
    """A broker whose topics can migrate. The agent's thread makes all calls, one at a time.

    Each call names a topic of a bundle that this broker serves, must be harmless when repeated, and
    raises CannotMigrate with a reason when it fails: a crash, or a new owner, repeats what was not
    written down. Any other exception counts as that too, and its traceback is logged. None may take
    longer than a third of the lease, which is not kept meanwhile, however many questions to green
    it is: one that ends by CannotMigrate, and goes on when it is repeated, is counted and shown;
    one that takes longer loses the broker all of its bundles.

    A broker without these methods takes no part: its topics stay where they are, and the progress
    names them as active.
    """

    def topics_of(self, bundle: str) -> Collection[str]:
        """The topics that exist in a loaded bundle, loaded or not; those too that were terminated.
        One that is not named has been deleted by its users, or was never here. Names are whole
        (``persistent://tenant/namespace/topic``); another one is logged and left out, and the
        bundle does not count as named.

        It excludes a creation that is under way. A creation asks ``Agent.green_for`` first, under
        the same lock, and creates the topic only if the answer is None: what this call does not
        name is created on green, or named by the next call. The answer never waits for this call.
        """
        ...

    def create_on(self, target: Target, topic: str) -> None:
        """Create tenant, namespace, policies, the topic, and each subscription on green, so that
        green keeps every message from the first one. What exists there is left as it is; but a
        topic that has messages there which are not from here fails, as long as it takes writes
        here: they would be read before its own, and its producers' next ones may count as stored
        there. For a
        partition, whose name ends in ``-partition-3``, the partitioned topic is created there with
        all of its partitions: clients ask for their number first."""
        ...

    def hold(self, topic: str) -> None:
        """From now on tell producers to try again, and consumers whose subscription does not exist
        here yet: green would not have it. Returns once no write, and no new subscription, can
        succeed. Writes that were accepted are replicated, and other consumers read on."""
        ...

    def terminate(self, topic: str, target: Target) -> None:
        """Accept no write any more, also after a restart or at another owner; redirect producers to
        green from now on, and consumers whose subscription does not exist here. Returns once no
        write can succeed here."""
        ...

    def replication_backlog(self, topic: str) -> Mapping[str, int]:
        """How many messages each other region lacks, by the name of its cluster, which operators
        are told; empty without replication."""
        ...

    def backlog(self, topic: str) -> Mapping[str, int]:
        """How many messages each subscription has not acknowledged; without those that were
        redirected."""
        ...

    def redirect(self, topic: str, subscription: str, target: Target) -> None:
        """Send the consumers of a drained subscription to green, then delete it here. Those that
        come for it later are sent there as well."""
        ...

    def remove(self, topic: str, target: Target) -> None:
        """Delete the topic here. Clients that come for it later are sent to green, and none creates
        it again."""
        ...

    def take_back(self, topic: str, target: Target) -> bool:
        """End the topic on green, then say whether green had taken no write of it: True means that
        none was taken, and that none can be. Subscriptions that began on green exist here, from the
        end on, before it is True: what is written here next must wait for their consumers.

        In this order, as a write between question and end would be lost. A Pulsar cannot open a
        topic that was ended: it is asked before, and a write in between fails the step
        (`simulation.traffic.pulsar_green`). False leaves the topic on green as it was.

        Raises TopicGone if green sends its clients on; and TopicLost, after it made sure that green
        serves the topic: an earlier attempt may have ended it there.
        """
        ...

    def release(self, topic: str) -> None:
        """Let clients in again that were held. A topic that was terminated or removed stays so: the
        record that says so may be lost."""
        ...

    def reopen(self, topic: str) -> None:
        """Serve the topic here again, as before it was held or terminated. Subscriptions that were
        redirected are there again, each from where it stood: what is written before their consumers
        are back must wait for them. A topic that was removed is created again."""
        ...
