"""A simulated broker, and what its agent is connected to besides the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent.broker import CannotLoad
from simulation.ownership.links import Link
from sinks.redis.hints import Counted
from trimtab.migration.migration import Migration
from trimtab.wire.hints import Hints
from trimtab.wire.lookup import ServiceUrls
from trimtab.wire.ownership import Candidate
from trimtab.wire.reports.load_report import LocalBrokerData
from trimtab.wire.topics import TopicCall, TopicOutcome, TopicRecord


@dataclass(slots=True)
class Broker:
    """A broker that holds the bundles it is given; sometimes a load fails, or is slow."""

    link: Link
    loaded: set[str] = field(default_factory=set)
    serves: Callable[[str], bool] = lambda _: False
    """Whether the broker serves the bundle to clients: not while it is being unloaded."""

    def bundles(self) -> set[str]:
        return self.loaded

    def load_report(self) -> LocalBrokerData:
        return LocalBrokerData()

    def prepare(self, bundle: str) -> None:
        """There is nothing to warm up."""

    def load(self, bundle: str) -> None:
        if self.link.rng.random() < 0.01:
            raise CannotLoad(bundle)
        if self.link.odds.load_s:
            self.link.meanwhile(self.link.odds.load_s)
        self._take_time()
        self.loaded.add(bundle)

    def unload(self, bundle: str) -> None:
        if self.serves(bundle):
            raise AssertionError(f"{bundle} is unloaded and served")
        self._take_time()
        self.loaded.discard(bundle)

    def topics(self, bundle: str) -> Mapping[int, Sequence[float]]:  # noqa: ARG002 - of any
        return {}

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self.loaded.discard(bundle)
        self.loaded.update(children)

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self.loaded.difference_update(parts)
        self.loaded.add(whole)

    def _take_time(self) -> None:
        link = self.link
        luck = link.rng.random()
        if luck < link.odds.very_slow:
            link.meanwhile(float(link.rng.uniform(5.0, 20.0)))
        elif luck < link.odds.very_slow + link.odds.slow:
            link.meanwhile(float(link.rng.exponential(1.0)))


class EvenHints:
    """Hints in which all brokers are equally good."""

    def __init__(self, brokers: Sequence[str]) -> None:
        candidates = tuple(Candidate(broker, 0.5) for broker in brokers)
        self._hints = Hints(round=1, candidates=candidates, each=0.01)

    def read(self, cluster: str) -> Hints:  # noqa: ARG002 - there is one
        return self._hints

    def placed(self, cluster: str) -> int:  # noqa: ARG002 - there is one
        return 0

    def group_of(self, *_: object) -> None:
        """No namespace is in a group."""

    def count(
        self,
        cluster: str,  # noqa: ARG002 - the contract of hints
        namespaces: Sequence[str],  # noqa: ARG002
        tallies: Sequence[str],
    ) -> Counted:
        return Counted({}, dict.fromkeys(tallies, 0))


class UnreadReports:
    """Reports without a reader."""

    def offer(self, data: LocalBrokerData, now: float) -> None:
        pass


class UnreadUrls:
    """Service URLs without a reader."""

    def write(self, cluster: str, broker: str, urls: ServiceUrls) -> None:
        pass

    def read(self, cluster: str, broker: str) -> None:
        pass


class NoTopics:
    """The topics of a cluster in which nothing migrates."""

    def migrations(self, cluster: str) -> dict[str, Migration]:  # noqa: ARG002 - there is none
        return {}

    def topics_in(self, cluster: str, bundle: str) -> Iterator[dict[str, TopicRecord]]:  # noqa: ARG002
        return iter(())

    def change(self, cluster: str, call: TopicCall) -> tuple[TopicOutcome, ...]:  # noqa: ARG002
        return ()
