"""The errors of sinks, classified by what the caller should do."""

from __future__ import annotations

from typing import Final


class SinkError(RuntimeError):
    """The base of these errors."""


class Unavailable(SinkError):
    """Retry the same call with back-off; it may have succeeded already, which is harmless."""


class StoreUnavailable(Unavailable):
    """Redis does not answer, or takes no writes at present; names its address."""


class Isolated(StoreUnavailable):
    """The master hears too few of the replicas that one cluster needs; others may need fewer."""


class KafkaUnavailable(Unavailable):
    """Kafka does not answer; names its address."""


UNOPENED: Final = (
    "no job has opened it on this data; start one (trimtab job), "
    "or wait while it restores the records"
)
"""Why a store is closed, for those who cannot know whether a job ever ran."""


class Closed(SinkError):
    """The store is not open to the caller: brokers wait, the job opens it."""


class GenerationSpent(SinkError):
    """This generation was opened on another run of the server, whose last writes may be lost.

    Brokers may have seen its epochs: claim a new generation, then open the store with that one.
    """


class Fenced(SinkError):
    """A newer job has taken over: stop if Kafka says so.

    Redis only knows the highest generation that opened it, given as ``generation``; it is 0 if
    Kafka raised this. Redis is right unless the topic of claims has lost some.
    """

    def __init__(self, text: str, generation: int = 0) -> None:
        super().__init__(text)
        self.generation = generation


class Misconfigured(SinkError):
    """A retry cannot help: a password, a right, a topic or a limit is wrong."""


class Evicting(Misconfigured):
    """The server would delete keys when it is full; nothing is opened on it until it would not."""


class Damaged(Misconfigured):
    """One cluster's data in Redis is not as trimtab writes it; other clusters are not affected."""
