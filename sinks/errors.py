"""What can go wrong with a sink, split by what the caller should do about it."""

from __future__ import annotations


class SinkError(RuntimeError):
    """Any of these."""


class Unavailable(SinkError):
    """Wait with back-off, then do the same again; it may have been done, which is harmless."""


class StoreUnavailable(Unavailable):
    """Redis does not answer, or does not take writes at present; names its address."""


class KafkaUnavailable(Unavailable):
    """Kafka does not answer; names its address."""


class Closed(SinkError):
    """This store is not open to the caller: brokers wait, the job opens it."""


class GenerationSpent(SinkError):
    """This generation was opened on another run of the server, whose last writes may be lost.

    Its epochs may have been seen by brokers: claim a new generation, then open the store with that.
    """


class Fenced(SinkError):
    """A newer job has taken over: stop, where Kafka says so.

    Redis only knows the highest generation that it was opened to, which is ``generation`` then; 0
    where Kafka says it. Redis is right unless the topic of claims has lost some.
    """

    def __init__(self, text: str, generation: int = 0) -> None:
        super().__init__(text)
        self.generation = generation


class Misconfigured(SinkError):
    """No repetition will help: a password, a right, a topic or a limit is wrong."""


class Damaged(Misconfigured):
    """What one cluster has in Redis is not what trimtab writes there; other clusters are sound."""
