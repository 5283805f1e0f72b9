"""One instruction to one broker: an entry of its Redis stream and a record on trimtab.commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from trimtab.migration.migration import Target
from trimtab.model import NO_EPOCH, Epoch, InvalidName, merge_names, parse_bundle

LARGEST: Final = 1 << 53
"""A Lua number is a double: larger integers are not exact."""


class CommandKind(StrEnum):
    """What a command tells a broker to do."""

    UNLOAD = "unload"
    """Stop serving the bundle and release it."""
    TRANSFER = "transfer"
    """Stop serving the bundle and hand it to ``destination``."""
    PREPARE = "prepare"
    """The bundle will come from ``source``: warm up, do not serve."""
    OWN = "own"
    """The bundle is yours: serve it and confirm."""
    SPLIT = "split"
    """Split the bundle as ``division`` says. Report the children, or that it cannot be split."""
    MERGE = "merge"
    """Merge the bundle with ``neighbour``, the bundle just above it."""
    TOPIC_MIGRATED = "topic-migrated"
    """The migration ``migration`` takes the topics of ``scope`` to ``target``: look at its state,
    and do what is due for the topics that you own. The command is about no particular bundle."""


class Division(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Where an owner splits a bundle: one of Pulsar's algorithms, and the values that some of the
    algorithms read."""

    algorithm: str
    max_rate: float
    """Upper limit for the messages/s of a child."""
    max_throughput: float
    """Upper limit for the bytes/s of a child."""
    difference: float
    positions: tuple[int, ...] = ()
    """Positions on the ring at which specified_positions_divide splits. An owner whose version
    lacks this field declines such a split."""

    def asked(self, algorithm: str, positions: tuple[int, ...]) -> Division:
        """With an operator's algorithm and positions."""
        return msgspec.structs.replace(self, algorithm=algorithm, positions=positions)


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What one broker must do. A repeated batch repeats the ``id``; readers drop the copy.

    ``epoch`` is the record's epoch after the transition that issued the command: a broker obeys
    only as long as it has seen no higher epoch of the bundle. ``issued_at`` and ``deadline`` are
    Redis TIME, epoch milliseconds.
    """

    id: str
    cluster: str
    broker: str
    kind: CommandKind
    bundle: str
    epoch: Epoch = NO_EPOCH
    generation: int = 0
    source: str | None = None
    destination: str | None = None
    division: Division | None = None
    neighbour: str | None = None
    reason: str = ""
    plan: str = ""
    why: str = ""
    """What the plan does, in figures, for people."""
    migration: str = ""
    scope: str = ""
    """``cluster``, or a namespace, or a topic's full name."""
    target: Target | None = None
    """Green's URLs."""
    issued_at: int = 0
    deadline: int = 0
    v: int = 1

    def stamped(self, epoch: Epoch, issued_at: int, deadline: int) -> Command:
        """The command as the script sends it to its broker."""
        return msgspec.structs.replace(
            self,
            epoch=epoch,
            generation=epoch.generation,
            issued_at=issued_at,
            deadline=deadline,
        )

    def unstamped(self) -> Command:
        """The command as it is sent to the script, whose JSON lacks what the script stamps."""
        # The default itself, not an equal object: msgspec omits a field only for that.
        return msgspec.structs.replace(self, epoch=NO_EPOCH, generation=0, issued_at=0, deadline=0)

    def handed_on(self, source: str, destination: str) -> Command:
        """OWN for the next owner of a bundle that this TRANSFER moves: what its sender says of the
        move goes with it, except for ``why``, which is long and of the job's own command."""
        return msgspec.structs.replace(
            self.unstamped(),
            id=f"{self.id}/own",
            broker=destination,
            kind=CommandKind.OWN,
            source=source,
            destination=None,
            division=None,
            neighbour=None,
            why="",
            # The broker that hands over sends it: the version of the transfer says nothing of it.
            v=1,
        )

    def flaw(self) -> str:
        """Why no broker can obey this command; "" if one can."""
        if self.kind is CommandKind.TOPIC_MIGRATED:
            return "" if self.migration and self.target else "it names no migration, or no target"
        try:
            parse_bundle(self.bundle)
            if self.neighbour is not None:
                merge_names(self.bundle, self.neighbour)
        except InvalidName as error:
            return str(error)
        numbers = (*self.epoch, self.issued_at, self.deadline)
        if not all(0 <= number < LARGEST for number in numbers):
            return "an epoch or a time is negative or beyond 2^53"
        return ""
